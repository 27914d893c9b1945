//! `flashgrain study`: what is in its results, not how fast anything was.

use serde_json::Value;

use crate::support::{contents, fails, flashgrain, folder, stdout};

/// Little of everything.
const SMALL: [&str; 9] = [
    "study",
    "mqssd-lsm",
    "--records=4000",
    "--fanouts=4,8",
    "--concurrency=1,3",
    "--queries=40",
    "--seed=7",
    "--quiet",
    "--cpu-costs=600,2000,500,1500",
];

#[test]
fn the_study_of_the_mqssd_paper_asks_every_layout_and_repeats_exactly() {
    let run = || {
        let assert = flashgrain().args(SMALL).arg("--json").assert().success();
        serde_json::from_str::<Value>(&stdout(&assert)).unwrap()
    };
    let result = run();
    assert_eq!(result, run(), "virtual times differ");
    let layouts = result["layouts"].as_array().unwrap();
    let names: Vec<_> = layouts.iter().map(|found| found["layout"].to_string()).collect();
    assert_eq!(
        names,
        [r#"{"leveled":{"fanout":4}}"#, r#"{"leveled":{"fanout":8}}"#, r#""single_level""#, r#""flash""#]
    );
    for found in layouts {
        for runs in ["queries", "scans"] {
            let clients: Vec<_> =
                found[runs].as_array().unwrap().iter().map(|run| run["clients"].as_u64()).collect();
            assert_eq!(clients, [Some(1), Some(3)], "{found}");
        }
        let fills = found["compactions"].as_array().unwrap().len();
        assert_eq!(fills, if found["layout"] == "flash" { 1 } else { 2 }, "{found}");
        // The times of queries are predicted, not only their order.
        for run in found["queries"].as_array().unwrap() {
            let predicted = found["predicted"]["query_s"].as_array().unwrap();
            let own = predicted.iter().find(|one| one[0] == run["clients"]).unwrap();
            let ratio = own[1].as_f64().unwrap() * run["per_s"].as_f64().unwrap();
            assert!((0.5..2.0).contains(&ratio), "{ratio}: {found}");
        }
    }
}

#[test]
fn the_study_of_the_mqssd_paper_shows_tables_and_charts() {
    let folder = folder();
    let page = folder.path().join("study.html");
    let assert = flashgrain().args(SMALL).arg("--report").arg(&page).assert().success();
    let shown = stdout(&assert);
    for text in ["1/16 k of the paper's", "F = 4", "single level", "seed 7", "(1490)", "(Tables 4 and 5"] {
        assert!(shown.contains(text), "no {text:?} in\n{shown}");
    }
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<svg viewBox").count(), 9);
    assert_eq!(contents(folder.path()).len(), 1);
}

#[test]
fn the_study_of_the_pdam_has_three_trees_and_the_lemma() {
    let folder = folder();
    let page = folder.path().join("study.html");
    let small = ["study", "pdam-btree", "--records=20000", "--clients=1,4", "--look-ups=400", "--quiet"];
    let run = || {
        let assert = flashgrain().args(small).arg("--json").assert().success();
        serde_json::from_str::<Value>(&stdout(&assert)).unwrap()
    };
    let result = run();
    assert_eq!(result, run(), "virtual times differ");
    assert_eq!(result["seed"], 1);
    let trees = result["drives"][0]["trees"].as_array().unwrap();
    let nodes: Vec<_> = trees.iter().map(|found| found["nodes"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["small", "large", "in-blocks"]);
    for found in trees {
        assert_eq!(found["check"]["records"], 20_000);
        let clients: Vec<_> =
            found["look_ups"].as_array().unwrap().iter().map(|run| run["clients"].as_u64()).collect();
        assert_eq!(clients, [Some(1), Some(4)], "{found}");
    }
    let assert = flashgrain().args(small).arg("--report").arg(&page).assert().success();
    assert!(stdout(&assert).contains("log_B N / log_PB N"));
    assert_eq!(std::fs::read_to_string(&page).unwrap().matches("<svg viewBox").count(), 1);
    fails(flashgrain().args(["study", "pdam-btree", "--blocks=3"]), 2, &["expected 2, 4, 8 or 16"]);
}

#[test]
fn the_study_of_node_sizes_has_both_trees_and_the_line() {
    let folder = folder();
    let run = |report: &str, more: &[&str]| {
        let page = folder.path().join(report);
        let small = ["study", "node-size", "--records=12000", "--inserts=2000", "--look-ups=2000", "--quiet"];
        let nodes = "--node-bytes=64KiB,4KiB,16KiB,256KiB,4KiB";
        let assert =
            flashgrain().args(small).arg(nodes).args(more).arg("--report").arg(&page).assert().success();
        let page = std::fs::read_to_string(&page).unwrap();
        let (shown, _command) = page.split_once("Made from").unwrap();
        (stdout(&assert), shown.to_owned())
    };
    let (json, page) = run("first.html", &["--json"]);
    let (text, again) = run("second.html", &[]);
    assert_eq!(page, again, "virtual times differ");
    let result: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(result["seed"], 1);
    let drive = &result["drives"][0];
    // Seeks are shorter than the drive's, as a store wants most of so small a drive to be free.
    let setup = drive["costs"]["setup_seconds"].as_f64().unwrap();
    assert!((0.004..0.013).contains(&setup), "{setup}");
    let points = drive["points"].as_array().unwrap();
    let trees: Vec<_> = points
        .iter()
        .map(|point| (point["tree"].as_str().unwrap(), point["node_bytes"].as_u64().unwrap() >> 10))
        .collect();
    let expected = [("b-plus", 4), ("b-plus", 16), ("b-plus", 64), ("b-epsilon", 64), ("b-epsilon", 256)];
    assert_eq!(trees, expected);
    for point in points {
        // Half as many inserts come before those that count, and some end behind them.
        let records = point["check"]["records"].as_u64().unwrap();
        assert!((15_000..16_000).contains(&records), "{point}");
        assert_eq!(point["loaded"].is_object(), point["tree"] == "b-plus", "{point}");
        let us = |operations: &str| 1e6 / point[operations]["measured"]["per_s"].as_f64().unwrap();
        assert!(us("grown") > 1000.0, "look-ups do not read: {point}");
        let is_buffered = us("inserts") < us("grown") / 2.0;
        assert_eq!(is_buffered, point["tree"] == "b-epsilon", "{point}");
    }
    for part in ["half-bandwidth size", "loaded B+-trees", "Nodes with the cheapest operations"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert_eq!(page.matches("<svg viewBox").count(), 2);
    // On a directory there is Berkeley DB beside them, or how to get it.
    let few = ["study", "node-size", "--records=2000", "--inserts=200", "--look-ups=200", "--quiet"];
    let assert = flashgrain().args(few).arg("--node-bytes=4KiB,32KiB").arg(folder.path()).assert().success();
    let text = stdout(&assert);
    assert!(text.contains("Berkeley DB 5.") || text.contains("--features berkeleydb"), "{text}");
    let study = |argument: &str, text: &str| {
        fails(flashgrain().args(["study", "node-size", argument]), 2, &[text]);
    };
    study("--node-bytes=2KiB", "expected powers of two from 4KiB to 4MiB");
    study("--node-bytes=96KiB", "expected powers of two from 4KiB to 4MiB");
    study("--fanout=12", "expected 2, 4, 8, 16, 32 or 64");
    study("--basement-divisor=3", "expected 1, 2, 4, 8, 16, 32 or 64");
    study("/no/such/directory", "not a directory");
}

#[test]
fn a_directory_has_nothing_left_in_it() {
    let folder = folder();
    let target = folder.path().to_str().unwrap();
    let arguments = ["--records=1500", "--fanouts=8", "--concurrency=1", "--queries=10"];
    flashgrain().args(["study", "mqssd-lsm", target]).args(arguments).assert().success();
    assert!(contents(folder.path()).is_empty());
}

#[test]
fn what_cannot_be_studied_is_refused() {
    let study = |arguments: &[&str], texts: &[&str]| {
        fails(flashgrain().args(["study", "mqssd-lsm"]).args(arguments), 2, texts);
    };
    study(&["/no/such/directory"], &["not a directory", "sim:990pro"]);
    study(&["sim:none"], &["none"]);
    study(&["--fanouts=1"], &["--fanouts"]);
    study(&["--concurrency=0"], &["--concurrency"]);
    study(&["--records=1"], &["--records"]);
    study(&["--table-bytes=64KiB"], &["a power of two from 256KiB on"]);
    study(&["--filter-bits=99", "--records=2000"], &["from 0 to 30 bits"]);
}

/// The study of the other paper, a hundredth of a second for each point in its scale.
const SMALL_XPOINT: [&str; 6] =
    ["study", "xpoint", "--records=1500", "--seconds=0.5", "--quiet", "--cpu-costs=600,2000,500,1500"];

#[test]
fn the_study_of_the_3d_xpoint_paper_asks_all_its_questions() {
    let folder = folder();
    let page = folder.path().join("study.html");
    let drives = ["sim:intel-530", "sim:900p"];
    let assert = flashgrain()
        .args(SMALL_XPOINT)
        .args(drives)
        .arg("--json")
        .arg("--report")
        .arg(&page)
        .assert()
        .success();
    let result: Value = serde_json::from_str(&stdout(&assert)).unwrap();
    let points: Vec<_> = result["answers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| (answer["question"].as_str().unwrap(), answer["points"].as_array().unwrap().len()))
        .collect();
    let expected = [
        ("writes", 14),
        ("level-zero", 6),
        ("file-size", 6),
        ("values", 2),
        ("parallelism", 12),
        ("waiting", 12),
        ("log", 24),
        ("memtables", 6),
        ("bursts", 3),
        ("reads", 10),
    ];
    assert_eq!(points, expected);
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<svg viewBox").count(), 9 * 3 + 6);
}

#[test]
fn a_single_question_is_shown_with_the_papers_figures() {
    let assert = flashgrain().args(SMALL_XPOINT).args(["sim:900p", "--only=level-zero"]).assert().success();
    let shown = stdout(&assert);
    assert!(shown.contains("(134 µs)") && shown.contains("Figures 8 to 10"), "{shown}");
    assert!(!shown.contains("Figure 19"), "{shown}");
    fails(flashgrain().args(["study", "xpoint", "--only=everything"]), 2, &["level-zero"]);
    fails(flashgrain().args(["study", "xpoint", "/no/such/directory"]), 2, &["not a directory"]);
}

/// Little of SQLite's.
#[cfg(feature = "hidden-parameters")]
const SMALL_SQLITE: [&str; 6] =
    ["study", "hidden-parameters", "--divisor=500", "--iterations=2", "--transactions=1,100", "--quiet"];

#[test]
#[cfg(feature = "hidden-parameters")]
fn the_study_of_hidden_parameters_asks_every_technique_and_repeats_exactly() {
    let run = || {
        let assert = flashgrain().args(SMALL_SQLITE).arg("--json").assert().success();
        serde_json::from_str::<Value>(&stdout(&assert)).unwrap()
    };
    let result = run();
    assert_eq!(result, run(), "virtual times differ");
    assert_eq!(result["hot"]["runs"].as_array().unwrap().len(), 6);
    // Three sizes of pages on two partitions, and the paper's as InnoDB was changed; six mixes in three ways.
    assert_eq!(result["mariadb"]["runs"].as_array().unwrap().len(), 7);
    assert_eq!(result["mariadb"]["ycsb"].as_array().unwrap().len(), 18);
    for layout in ["original", "aligned"] {
        let iterations = result["stripes"][layout]["iterations"].as_array().unwrap();
        assert_eq!(iterations.len(), 2);
        for iteration in iterations {
            // A commit writes a frame for the table and one for the index, or more.
            assert!(iteration["frames"].as_u64().unwrap() >= 200, "{iteration}");
        }
    }
    assert_eq!(result["records"]["contained_across"], 0);
    assert!(result["records"]["original_across"].as_u64().unwrap() > 60_000);
}

#[test]
#[cfg(feature = "hidden-parameters")]
fn the_study_of_hidden_parameters_shows_tables_and_charts() {
    let folder = folder();
    let page = folder.path().join("study.html");
    let assert = flashgrain().args(SMALL_SQLITE).arg("--report").arg(&page).assert().success();
    let shown = stdout(&assert);
    for text in [
        "1/500 of the paper's",
        "(+29.2 %)",
        "(-15.2 %)",
        "(12.4 %)",
        "6.7 % in the paper",
        "(+26.6 %)",
        "(+22.3 %)",
        "seed 1",
    ] {
        assert!(shown.contains(text), "no {text:?} in\n{shown}");
    }
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<svg viewBox").count(), 5);
    let real = ["study", "hidden-parameters", "--hot-drive=/tmp"];
    fails(flashgrain().args(real), 2, &["simulated drive"]);
}

/// Little of everything on drives; stores have little memory.
const SMALL_NVME: [&str; 7] =
    ["study", "nvme", "--requests=2000", "--in-flight=300", "--cache=4MiB", "--operations=600", "--tasks=64"];

/// All questions whose times are virtual.
const NVME_QUESTIONS: [&str; 10] = [
    "drives",
    "page-size",
    "outstanding",
    "interfaces",
    "io-models",
    "ablation",
    "data-size",
    "backends",
    "processor",
    "memory-or-ssd",
];

#[test]
fn the_study_of_the_nvme_paper_asks_all_its_questions_and_repeats_exactly() {
    let only = format!("--only={}", NVME_QUESTIONS.join(","));
    let run = || {
        let assert = flashgrain().args(SMALL_NVME).args([&only, "--quiet", "--json"]).assert().success();
        serde_json::from_str::<Value>(&stdout(&assert)).unwrap()
    };
    let result = run();
    assert_eq!(result, run(), "virtual times differ");
    let answers = result["answers"].as_array().unwrap();
    let asked: Vec<_> = answers.iter().map(|answer| answer["question"].as_str().unwrap()).collect();
    assert_eq!(asked, NVME_QUESTIONS);
    let points = |question: &str, of: &str| {
        let answer = answers.iter().find(|answer| answer["question"] == question).unwrap();
        answer[of].as_array().unwrap().clone()
    };
    let drives: Vec<_> = points("drives", "scaling").iter().map(|one| one["drives"].as_u64()).collect();
    assert_eq!(drives, (1..=8).map(Some).collect::<Vec<_>>());
    let lengths = [
        ("drives", "mixes", 6),
        ("page-size", "pages", 8),
        ("outstanding", "depths", 9),
        ("interfaces", "points", 5 * 7),
        ("ablation", "steps", 6),
        ("data-size", "sizes", 7),
        ("backends", "points", 4 * 5),
        ("processor", "bars", 5),
    ];
    for (question, of, length) in lengths {
        assert_eq!(points(question, of).len(), length, "{question}");
    }
    // A thread makes as many requests as its time allows: one in 1,587 ns with io_uring.
    let one = points("interfaces", "points");
    let one = one.iter().find(|point| point["interface"] == "io_uring" && point["threads"] == 1).unwrap();
    let rate = one["requests_per_s"].as_f64().unwrap();
    assert!((rate * 1587e-9 - 1.0).abs() < 0.05, "{one}");
    // In memory look-ups read nothing, and then about a page.
    let reads: Vec<_> = points("data-size", "sizes")
        .iter()
        .map(|size| size["look_ups"]["reads_each"].as_f64().unwrap())
        .collect();
    assert!(reads[0] < 0.1 && (0.8..2.5).contains(&reads[6]), "{reads:?}");
}

#[test]
fn the_study_of_the_nvme_paper_shows_tables_charts_and_what_was_too_small() {
    let folder = folder();
    let page = folder.path().join("study.html");
    let questions = "--only=drives,outstanding,task-switch,memory-or-ssd";
    let assert =
        flashgrain().args(SMALL_NVME).args([questions, "--quiet", "--report"]).arg(&page).assert().success();
    let shown = stdout(&assert);
    for text in [
        "(12.5 M, × ",
        "Too few requests",
        "Too small to show rates",
        "2.512 TB",
        "2.500 TB",
        "about 20",
        "seed 1",
    ] {
        assert!(shown.contains(text), "no {text:?} in\n{shown}");
    }
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<svg viewBox").count(), 3);
    fails(
        flashgrain().args(["study", "nvme", "/no/such/directory"]),
        2,
        &["not a directory", "sim:8xpm1733"],
    );
    fails(flashgrain().args(["study", "nvme", "--interface-costs=1,2"]), 2, &["PREAD,LIBAIO"]);
    fails(flashgrain().args(["study", "nvme", "--prices=1,2,3,4"]), 2, &["BUDGET,SERVER"]);
}

#[test]
fn a_directory_is_asked_what_one_drive_shows() {
    let folder = folder();
    let small = ["--seconds=0.05", "--file-size=4MiB", "--cache=4MiB", "--operations=200", "--tasks=16"];
    let assert = flashgrain()
        .args(["study", "nvme", "--only=drives,page-size,interfaces,io-models,ablation,backends,processor"])
        .args(small)
        .args(["--quiet", "--json"])
        .arg(folder.path())
        .assert()
        .success();
    let result: Value = serde_json::from_str(&stdout(&assert)).unwrap();
    let answers = result["answers"].as_array().unwrap();
    assert_eq!(answers[0]["scaling"].as_array().unwrap().len(), 0);
    assert_eq!(answers[3]["points"].as_array().unwrap().len(), 0);
    for (answer, of) in [(0, "mixes"), (1, "pages"), (2, "points"), (4, "steps"), (5, "points"), (6, "bars")]
    {
        assert!(!answers[answer][of].as_array().unwrap().is_empty(), "{}", answers[answer]);
    }
    assert!(contents(folder.path()).is_empty());
}

/// Questions that are in the folder are not asked again.
#[test]
fn studies_are_listed_shown_and_run_on_one_frame() {
    let list = stdout(&flashgrain().args(["study", "list"]).assert().success());
    for name in ["mqssd-lsm", "node-size", "nvme", "pdam-btree", "xpoint"] {
        assert!(list.contains(&format!("{name}\n")), "{list}");
        let shown = stdout(&flashgrain().args(["study", "show", name]).assert().success());
        assert!(shown.contains("the paper") && shown.contains("here"), "{shown}");
    }
    let shown = stdout(&flashgrain().args(["study", "show", "xpoint"]).assert().success());
    assert!(shown.contains("| Figure 9 ") && shown.contains("| not run"), "{shown}");
    fails(flashgrain().args(["study", "show", "berkeley"]), 2, &["there is no study berkeley", "pdam-btree"]);

    let refused = |arguments: &[&str], why: &[&str]| {
        fails(flashgrain().args(["study", "run"]).args(arguments), 2, why);
    };
    refused(&["xpoint", "--only=drives"], &["no question drives", "level-zero"]);
    refused(&["xpoint", "--", "--only=writes"], &["give --only before --"]);
    refused(&["pdam-btree", "--", "--report", "page.html"], &["folder of --to"]);
    refused(&["pdam-btree", "--repeats=2", "--seed=18446744073709551615"], &["no 2 seeds"]);

    let folder = folder();
    let to = folder.path().join("refused");
    let unknown = ["study", "run", "pdam-btree", "--to"];
    fails(flashgrain().args(unknown).arg(&to).args(["--", "--bogus"]), 2, &["arguments after --", "--bogus"]);

    let run = |repeats: &str| {
        let mut command = flashgrain();
        command.args(["study", "run", "pdam-btree", "--json", repeats, "--to"]).arg(folder.path());
        command.args(["--", "--records=20000", "--clients=1,2", "--look-ups=400"]);
        let assert = command.assert().success();
        let notes = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        (serde_json::from_str::<Value>(&stdout(&assert)).unwrap(), notes)
    };
    let (first, notes) = run("--repeats=1");
    assert!(!notes.contains("kept in"), "{notes}");
    let numbers = first[0]["numbers"].as_array().unwrap();
    assert_eq!(numbers.len(), 2, "{first}");
    assert!(numbers.iter().all(|number| number["ours"]["value"].as_f64().unwrap() > 0.5), "{first}");
    let (again, notes) = run("--repeats=2");
    assert!(notes.contains("pdam-btree-seed-1: kept in") && !notes.contains("seed-2: kept"), "{notes}");
    let ours = &again[0]["numbers"][0]["ours"];
    assert!(ours["low"].as_f64() <= ours["high"].as_f64(), "{again}");
    let names = contents(folder.path());
    assert_eq!(names.len(), 5, "{:?}", names.keys());
}
