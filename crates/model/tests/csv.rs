//! The CSV form of samples: what is read, what is written, what is refused and how.

use flashgrain_model::{Access, Error, Sample, Workload, read_csv, write_csv};
use proptest::prelude::*;

fn refused(text: &str) -> (u64, String) {
    match read_csv(text.as_bytes()) {
        Err(Error::Csv { line, problem }) => (line, problem),
        other => panic!("{text:?} must be refused with a line, got {other:?}"),
    }
}

#[test]
fn columns_are_found_by_name_and_others_ignored() {
    let text = "\
# made by hand
Concurrency, comment ,bytes_per_second,request_bytes,access,latency_us
8,\"hello, world\",1.5e9,4096,read,12
# in between
16,,2000000000,65536,WRITE,
";
    let samples = read_csv(text.as_bytes()).unwrap();
    let expected = |access, request_bytes, concurrency, bytes_per_second| Sample {
        experiment: "external".into(),
        repeat: 0,
        workload: Workload::random(access, request_bytes, concurrency),
        bytes_per_second,
    };
    assert_eq!(
        samples,
        [expected(Access::Read, 4096.0, 8.0, 1.5e9), expected(Access::Write, 65536.0, 16.0, 2e9)]
    );
}

#[test]
fn optional_columns_are_used_where_they_are_filled() {
    let text =
        "\u{feff}experiment,repeat,read_share,request_bytes,random_share,concurrency,bytes_per_second\r
mix,2,0.75,4096,0.5,4,1e8\r
,,1,4096,,4,1e8\r
";
    let samples = read_csv(text.as_bytes()).unwrap();
    let first = samples.first().unwrap();
    assert_eq!((first.experiment.as_str(), first.repeat), ("mix", 2));
    assert_eq!((first.workload.read_share, first.workload.random_share), (0.75, 0.5));
    let second = samples.get(1).unwrap();
    assert_eq!(
        (second.experiment.as_str(), second.repeat, second.workload.random_share),
        ("external", 0, 1.0)
    );
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let header = "access,request_bytes,concurrency,bytes_per_second\n";
    for (rows, line, words) in [
        ("read,4096,1,1e8\nread,4k,1,1e8\n", 3, r#"request_bytes is "4k""#),
        ("# a comment\n\nread,4096,1,fast\n", 4, r#"bytes_per_second is "fast""#),
        ("randread,4096,1,1e8\n", 2, "expected read or write"),
        ("read,4096,0,1e8\n", 2, "concurrency is 0, but must be between 1"),
        ("read,4096,1,-1e8\n", 2, "bytes_per_second is -100000000"),
        ("read,4096,1,nan\n", 2, "bytes_per_second is NaN"),
        ("read,4096,1,inf\n", 2, "bytes_per_second is inf"),
        ("\n# a comment\nread,4096,1\n", 4, "3 fields, but the header names 4 columns"),
        ("read,,1,1e8\n", 2, r#"request_bytes is """#),
    ] {
        let (at, problem) = refused(&format!("{header}{rows}"));
        assert!(at == line && problem.contains(words), "line {at}: {problem}");
    }
}

#[test]
fn a_header_that_lacks_something_is_refused_with_what_is_needed() {
    let (line, problem) = refused("access,bs,concurrency,bytes_per_second\nread,4096,1,1e8\n");
    assert!(
        line == 1 && problem.contains("no column request_bytes") && problem.contains("found are: access, bs")
    );
    let (_, problem) = refused("request_bytes,concurrency,bytes_per_second\n4096,1,1e8\n");
    assert!(problem.contains("no column access"), "{problem}");
    let (_, problem) = refused("access,access,request_bytes,concurrency,bytes_per_second\n");
    assert!(problem.contains("access appears twice"), "{problem}");
    assert!(read_csv("access,request_bytes,concurrency,bytes_per_second\n".as_bytes()).is_err());
    assert!(read_csv("".as_bytes()).is_err());
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
    assert!(read_csv(bytes.as_slice()).is_err());
}

fn sample() -> impl Strategy<Value = Sample> {
    let workload = (0.0..=1.0, 1.0..1e9, prop_oneof![Just(0.0), 1e-6..=1.0], 1.0..4096.0);
    ("[a-zA-Z0-9 ,;\"'_-]{1,12}", 0u32..100, workload, 1e3..1e11).prop_map(
        |(experiment, repeat, workload, rate)| {
            let (read_share, request_bytes, random_share, concurrency) = workload;
            // Surrounding blanks are trimmed and an empty experiment has a default: neither survives, neither
            // is meant to.
            let experiment = format!("x{}", experiment.trim());
            let workload = Workload { read_share, request_bytes, random_share, concurrency };
            Sample { experiment, repeat, workload, bytes_per_second: rate }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(samples in proptest::collection::vec(sample(), 1..20)) {
        let mut text = Vec::new();
        write_csv(&mut text, &samples).unwrap();
        prop_assert_eq!(read_csv(text.as_slice()).unwrap(), samples);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read_csv(bytes.as_slice());
        let _ = read_csv([b"access,request_bytes,concurrency,bytes_per_second\n".as_slice(), &bytes].concat().as_slice());
    }
}
