//! A store with the layout that follows from the profile of its drive: `cargo run -p flashgrain --features
//! profile --example tuned -- flashgrain-out/profile.json /data/fruit`.

use std::path::PathBuf;

use flashgrain::{Db, Readable};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(profile), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("say which profile, and where the store is to be".into());
    };
    let profile = flashgrain_profile::file::read(&profile)?;
    let db = Db::builder().path(path).profile(profile).cache_bytes(64 << 20).create()?;
    for decision in db.layout() {
        println!("{}: {} ({})", decision.setting.name(), decision.setting.value(), decision.because);
    }

    let fruit = db.tree("fruit")?;
    fruit.insert("apple", "red")?; // durable when it returns
    db.transaction(|tx| {
        // All or nothing; again if it loses to another one.
        let colour = tx.get(&fruit, "apple")?.unwrap_or("green".into());
        tx.insert(&fruit, "pear", colour)
    })?;
    for record in fruit.range("a".."q")? {
        println!("{:?}", record?);
    }
    Ok(db.close()?)
}
