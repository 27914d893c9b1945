//! MD5 (RFC 1321), by which scripts name long results.

const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The hash in hexadecimal digits.
pub fn md5(bytes: &[u8]) -> String {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((bytes.len() as u64 * 8).to_le_bytes());
    let mut state: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded.chunks_exact(64) {
        add_block(&mut state, block);
    }
    state.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
}

fn add_block(state: &mut [u32; 4], block: &[u8]) {
    let words: Vec<u32> =
        block.chunks_exact(4).map(|word| u32::from_le_bytes(*word.first_chunk().unwrap())).collect();
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..64_usize {
        let (mixed, word) = match step / 16 {
            0 => (b & c | !b & d, step),
            1 => (d & b | !d & c, 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        let sine = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
        let sum = a.wrapping_add(mixed).wrapping_add(sine).wrapping_add(words[word % 16]);
        (a, d, c) = (d, c, b);
        b = b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4]));
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d]) {
        *word = word.wrapping_add(add);
    }
}

#[test]
fn hashes_are_those_of_the_standard() {
    assert_eq!(md5(b""), "d41d8cd98f00b204e9800998ecf8427e");
    assert_eq!(md5(b"message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
    let digits = "1234567890".repeat(8);
    assert_eq!(md5(digits.as_bytes()), "57edf4a22be3c955ac49da2e2107b67a");
}
