//! Committed records are there when a store that was closed is opened again.

use flashgrain_bench::engine::{Direction, Durability, Engine};

use super::{Record, ask, records, setup, with_each};

fn number(number: u32) -> Record {
    (number.to_be_bytes().to_vec(), vec![number as u8; number as usize % 3000])
}

fn all(engine: &dyn Engine) -> [Vec<Record>; 2] {
    let all = |table| {
        ask(engine, move |session| Ok(records(session, table, &[0], Direction::Forward, usize::MAX)?))
            .unwrap()
    };
    [all(0), all(1)]
}

#[test]
fn closed_stores_keep_what_was_committed() {
    with_each(|name, dir| {
        for durability in [Durability::Full, Durability::Buffered, Durability::None] {
            let dir = dir.join(format!("{durability:?}"));
            let engine = name.open(&setup(&dir, durability)).unwrap();
            let written = ask(&*engine, |session| {
                for (key, value) in (0..100).map(number) {
                    session.put(0, &key, &value)?;
                }
                session.remove(0, &number(7).0)?;
                session.begin()?;
                session.put(1, b"committed", b"1")?;
                session.put(0, &number(9).0, b"replaced")?;
                session.commit()?;
                session.begin()?;
                session.put(1, b"rolled back", b"2")?;
                session.rollback();
                Ok(())
            });
            written.unwrap();
            let before = all(&*engine);
            engine.settle().unwrap();
            // Behind the checkpoint there is a log to replay, if the engine has one.
            ask(&*engine, |session| Ok(session.put(1, b"later", b"3")?)).unwrap();
            engine.close().unwrap();

            let engine = name.open(&setup(&dir, durability)).unwrap();
            let mut expected: Vec<_> = (0..100).filter(|key| *key != 7).map(number).collect();
            expected[8].1 = b"replaced".to_vec();
            let pair = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
            assert_eq!(
                before,
                [expected.clone(), vec![pair(b"committed", b"1")]],
                "{name}, {durability:?}, before"
            );
            let second = vec![pair(b"committed", b"1"), pair(b"later", b"3")];
            assert_eq!(all(&*engine), [expected, second], "{name}, {durability:?}, opened again");
            engine.close().unwrap();
        }
    });
}
