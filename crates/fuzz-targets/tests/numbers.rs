//! The way from a profile's file to its report with numbers that no drive has: each is refused with its
//! field, or shown.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use flashgrain_fuzz_targets::{corpus, run};
use serde_json::{Value, json};

/// A report takes milliseconds; what takes this long does not end.
const LIMIT: Duration = Duration::from_secs(60);

const ABSURD: &[f64] = &[1e308, -1e308, 5e-324, -5e-324, 0.0, -1.0, 1e-30, 1e18];

/// JSON pointers to one number of each kind: of the items of a list, the first that has it.
fn numbers(value: &Value, pointer: &str, kind: &str, kinds: &mut BTreeSet<String>, found: &mut Vec<String>) {
    match value {
        Value::Number(_) if kinds.insert(kind.to_owned()) => found.push(pointer.to_owned()),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| {
            numbers(item, &format!("{pointer}/{index}"), &format!("{kind}/*"), kinds, found);
        }),
        Value::Object(fields) => fields.iter().for_each(|(key, field)| {
            numbers(field, &format!("{pointer}/{key}"), &format!("{kind}/{key}"), kinds, found);
        }),
        _ => {}
    }
}

#[test]
fn absurd_numbers_in_a_profile_end_in_an_error_or_a_report() {
    let (_, input) = corpus("profile").unwrap().swap_remove(0);
    let profile: Value = serde_json::from_slice(&input).unwrap();
    let mut pointers = Vec::new();
    numbers(&profile, "", "", &mut BTreeSet::new(), &mut pointers);
    assert!(pointers.len() > 100, "{} kinds of numbers", pointers.len());
    for (pointer, absurd) in pointers.iter().flat_map(|pointer| ABSURD.iter().map(move |one| (pointer, *one)))
    {
        let mut changed = profile.clone();
        *changed.pointer_mut(pointer).unwrap() = json!(absurd);
        let bytes = serde_json::to_vec(&changed).unwrap();
        let (done, wait) = channel();
        let worker = thread::spawn(move || {
            run("profile", &bytes);
            done.send(()).unwrap();
        });
        let ended = wait.recv_timeout(LIMIT);
        assert!(ended.is_ok(), "{pointer} = {absurd:e}: no report within {LIMIT:?}, or a panic");
        worker.join().unwrap();
    }
}
