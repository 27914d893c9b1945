//! The requests of a range query (MQSSD paper §5.2.1).

/// Requests that read `bytes` in sequence beyond a first block of `block_bytes`: one more block, then sizes
/// that double from two blocks up to `read_ahead_bytes`, as RocksDB's automatic read-ahead does.
pub(super) fn further_requests(bytes: f64, block_bytes: f64, read_ahead_bytes: f64) -> f64 {
    if bytes <= 0.0 {
        return 0.0;
    }
    let (mut requests, mut left, mut size) = (0.0, bytes, block_bytes);
    loop {
        if size >= read_ahead_bytes.max(block_bytes) {
            return requests + left / size;
        }
        if left <= size {
            // A part of a request is the share of queries that need it.
            return requests + left / size;
        }
        left -= size;
        requests += 1.0;
        size = (2.0 * size).min(read_ahead_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_ahead_doubles_up_to_its_limit() {
        let requests = |blocks: f64| further_requests(4096.0 * blocks, 4096.0, 262_144.0);
        assert_eq!(requests(0.0), 0.0);
        assert_eq!(requests(0.5), 0.5);
        assert_eq!(requests(1.0), 1.0);
        // 1 + 2 + 4 + 8 + 16 + 32 blocks, then 64 each.
        assert_eq!(requests(63.0), 6.0);
        assert_eq!(requests(63.0 + 640.0), 16.0);
    }

    #[test]
    fn without_read_ahead_every_block_is_a_request() {
        assert_eq!(further_requests(40_960.0, 4096.0, 0.0), 10.0);
    }
}
