//! Writes the report of a profile: `report OUT.html [profile.json]`. Without a profile, that of a made-up
//! drive, to look at charts that the drive at hand cannot fill.

#[path = "../tests/common/mod.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod common;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().ok_or("usage: report OUT.html [profile.json]")?;
    let profile = match arguments.next() {
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path)?)?,
        None => common::full(),
    };
    print!("{}", flashgrain_report::terminal(&profile, 100));
    std::fs::write(out, flashgrain_report::html(&profile)?)?;
    Ok(())
}
