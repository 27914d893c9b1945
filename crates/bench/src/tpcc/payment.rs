//! The Payment transaction (2.5), and how customers are found.

use super::access::{Access, Ending, part};
use super::keys::{self, DistrictId, Writer};
use super::new_order::other_warehouse;
use super::random::{Constants, Random};
use super::rows::{Customer, District, History, Text, Warehouse};
use super::tables;
use super::{DISTRICTS, Scale};
use crate::engine::Failure;

/// Credit of one customer in ten.
pub(super) const BAD_CREDIT: &[u8] = b"BC";

/// Whom a user asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    LastName(Text<16>),
    Number(u32),
}

impl Who {
    /// Six in ten by name.
    pub fn draw(random: &mut Random, constants: &Constants, scale: &Scale) -> Self {
        if random.percent(60) {
            Self::LastName(random.last_name(constants, scale.customers_per_district))
        } else {
            Self::Number(random.customer(constants, scale.customers_per_district))
        }
    }

    /// The customer's number: of those with the same name the one in the middle by first name, rounded up
    /// (2.5.2.2).
    pub fn find(&self, access: &mut Access<'_>, of: DistrictId) -> Result<u32, Failure> {
        let last = match self {
            Self::Number(number) => return Ok(*number),
            Self::LastName(last) => last,
        };
        let prefix = keys::last_name(of, last);
        let mut numbers = Vec::new();
        access.scan(tables::CUSTOMER_NAME, &prefix, &prefix, |key, _| {
            numbers.push(part(keys::last_number(key))?);
            Ok(true)
        })?;
        let middle = numbers.get(numbers.len().saturating_sub(1) / 2);
        middle.copied().ok_or_else(|| Failure::Broken(anyhow::anyhow!("{of:?} has no customer {last:?}")))
    }
}

/// Input of the transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payment {
    of: DistrictId,
    customer_of: DistrictId,
    who: Who,
    amount: i64,
    date: u64,
    /// Key of its row in the history.
    history: (Writer, u64),
}

impl Payment {
    pub fn draw(
        random: &mut Random,
        constants: &Constants,
        scale: &Scale,
        warehouse: u32,
        date: u64,
        history: (Writer, u64),
    ) -> Self {
        let of = DistrictId { warehouse, district: random.between(1, DISTRICTS.into()) as u8 };
        let customer_of = if scale.warehouses == 1 || random.percent(85) {
            of
        } else {
            let warehouse = other_warehouse(random, scale, warehouse);
            DistrictId { warehouse, district: random.between(1, DISTRICTS.into()) as u8 }
        };
        let who = Who::draw(random, constants, scale);
        let amount = i64::from(random.between(100, 500_000));
        Self { of, customer_of, who, amount, date, history }
    }

    /// Before the transaction: the customer's number, as names never change; and prefetches the rows that it
    /// is going to read and few others do.
    pub fn look(&self, access: &mut Access<'_>) -> Result<u32, Failure> {
        let number = self.who.find(access, self.customer_of)?;
        access.prefetch::<Customer>(&[&keys::customer(self.customer_of, number)])?;
        Ok(number)
    }

    /// With the customer's number.
    pub fn execute(&self, number: u32, access: &mut Access<'_>) -> Result<Ending<()>, Failure> {
        let (of, customer_of) = (self.of, self.customer_of);
        let key = keys::customer(customer_of, number);
        let mut customer: Customer = access.get(&key)?;
        customer.balance -= self.amount;
        customer.ytd_payment += self.amount;
        customer.payments += 1;
        if customer.credit.as_bytes() == BAD_CREDIT {
            customer.data = self.noted(number, &customer.data);
        }
        access.put(&key, &customer)?;
        let mut warehouse: Warehouse = access.get(&keys::warehouse(of.warehouse))?;
        warehouse.ytd += self.amount;
        access.put(&keys::warehouse(of.warehouse), &warehouse)?;
        let mut district: District = access.get(&keys::district(of))?;
        district.ytd += self.amount;
        access.put(&keys::district(of), &district)?;
        let history = History {
            customer_warehouse: customer_of.warehouse,
            customer_district: customer_of.district,
            customer: number,
            warehouse: of.warehouse,
            district: of.district,
            date: self.date,
            amount: self.amount,
            data: Text::new(&[warehouse.name.as_bytes(), b"    ", district.name.as_bytes()].concat()),
        };
        let (writer, count) = self.history;
        access.put(&keys::history(writer, count), &history)?;
        Ok(Ending::Commit(()))
    }

    /// Data of a customer of bad credit: the payment, and before it those that there were, as far as there is
    /// room.
    fn noted(&self, customer: u32, data: &Text<500>) -> Text<500> {
        let (from, to) = (self.customer_of, self.of);
        let (units, cents) = (self.amount / 100, self.amount % 100);
        let mut text = format!(
            "{customer} {} {} {} {} {units}.{cents:02}|",
            from.district, from.warehouse, to.district, to.warehouse
        )
        .into_bytes();
        text.extend_from_slice(data.as_bytes());
        Text::new(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Stream;
    use super::*;

    #[test]
    fn customers_pay_elsewhere_and_go_by_name_as_often_as_they_should() {
        let scale = Scale::standard(4);
        let (constants, mut random) = (Constants::new(1), Random::new(1, Stream::Client(0)));
        let payments: Vec<_> = (0..20_000)
            .map(|_| Payment::draw(&mut random, &constants, &scale, 2, 1, (Writer::Client(0), 0)))
            .collect();
        let share = |of: &dyn Fn(&Payment) -> bool| {
            payments.iter().filter(|payment| of(payment)).count() as f64 / payments.len() as f64
        };
        let remote = share(&|payment| payment.customer_of.warehouse != 2);
        assert!((0.14..0.16).contains(&remote), "{remote}");
        let by_name = share(&|payment| matches!(payment.who, Who::LastName(_)));
        assert!((0.58..0.62).contains(&by_name), "{by_name}");
        let local = payments.iter().filter(|payment| payment.customer_of.warehouse == 2);
        assert!(local.into_iter().all(|payment| payment.customer_of == payment.of));
    }

    #[test]
    fn the_newest_payment_comes_first_in_the_data_of_a_customer_of_bad_credit() {
        let of = DistrictId { warehouse: 2, district: 3 };
        let payment = Payment {
            of,
            customer_of: DistrictId { warehouse: 4, district: 5 },
            who: Who::Number(6),
            amount: 12_305,
            date: 1,
            history: (Writer::Client(0), 0),
        };
        let data = payment.noted(6, &Text::new(&[b'x'; 500]));
        assert!(data.as_bytes().starts_with(b"6 5 4 3 2 123.05|xxx"));
        assert_eq!(data.as_bytes().len(), 500);
    }
}
