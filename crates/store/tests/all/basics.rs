//! What is put in can be read back.

use flashgrain::Db;

#[test]
fn what_is_put_in_can_be_read_back() {
    let db = Db::in_memory(64 << 20).unwrap();
    let tree = db.tree("fruit").unwrap();
    tree.insert("apple", "red").unwrap();
    assert_eq!(tree.get("apple").unwrap().unwrap(), "red");
    db.close().unwrap();
}
