//! The requests of a range query (MQSSD paper §5.2.1).

/// Requests that read `bytes` in sequence beyond a first block of `block_bytes`: block by block until
/// `blocks_alone` were read with the first one, then as many as were read so far, up to `read_ahead_bytes`.
/// With one block alone the sizes double from a block on, as those of RocksDB's automatic read-ahead do.
pub(super) fn further_requests(
    bytes: f64,
    block_bytes: f64,
    blocks_alone: f64,
    read_ahead_bytes: f64,
) -> f64 {
    let alone = (blocks_alone - 1.0).max(0.0);
    if bytes <= alone * block_bytes {
        return bytes.max(0.0) / block_bytes;
    }
    let largest = read_ahead_bytes.max(block_bytes);
    let (mut requests, mut left) = (alone, bytes - alone * block_bytes);
    let mut size = ((1.0 + alone) * block_bytes).min(largest);
    loop {
        // A part of a request is the share of queries that need it.
        if size >= largest || left <= size {
            return requests + left / size;
        }
        left -= size;
        requests += 1.0;
        size = (2.0 * size).min(largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_ahead_doubles_up_to_its_limit() {
        let requests = |blocks: f64| further_requests(4096.0 * blocks, 4096.0, 1.0, 262_144.0);
        assert_eq!(requests(0.0), 0.0);
        assert_eq!(requests(0.5), 0.5);
        assert_eq!(requests(1.0), 1.0);
        // 1 + 2 + 4 + 8 + 16 + 32 blocks, then 64 each.
        assert_eq!(requests(63.0), 6.0);
        assert_eq!(requests(63.0 + 640.0), 16.0);
    }

    #[test]
    fn without_read_ahead_every_block_is_a_request() {
        assert_eq!(further_requests(40_960.0, 4096.0, 1.0, 0.0), 10.0);
    }

    #[test]
    fn blocks_are_read_alone_before_many_are_read_at_once() {
        let requests = |blocks: f64| further_requests(4096.0 * blocks, 4096.0, 16.0, 65_536.0);
        assert_eq!((requests(0.0), requests(12.5), requests(15.0)), (0.0, 12.5, 15.0));
        assert_eq!(requests(15.0 + 16.0), 16.0);
        assert_eq!(requests(15.0 + 160.0), 25.0);
    }
}
