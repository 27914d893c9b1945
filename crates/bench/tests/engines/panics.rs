//! A client that panics does not take the engine with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use flashgrain_bench::engine::{Direction, Durability};

use super::{ask, setup, with_each};

#[test]
fn a_panic_in_the_middle_of_a_scan_reaches_the_caller_and_the_engine_goes_on() {
    with_each(|name, dir| {
        let engine = name.open(&setup(dir, Durability::Buffered)).unwrap();
        ask(&*engine, |session| Ok(session.put(0, b"key", b"value")?)).unwrap();
        let scan = || {
            engine.run(
                1,
                Arc::new(|_, session| {
                    session.begin()?;
                    session.put(0, b"other", b"never")?;
                    Ok(session.scan(0, b"k", Direction::Forward, &mut |_, _| panic!("in a visit"))?)
                }),
            )
        };
        let panic = catch_unwind(AssertUnwindSafe(scan)).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"in a visit"), "{name}");
        let found = ask(&*engine, |session| {
            session.put(0, b"key", b"again")?;
            let mut value = Vec::new();
            Ok((session.get(0, b"other", &mut value)?, session.get(0, b"key", &mut value)?, value))
        });
        assert_eq!(found.unwrap(), (false, true, b"again".to_vec()), "{name}");
        engine.close().unwrap();
    });
}
