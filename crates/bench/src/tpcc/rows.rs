//! The nine tables' rows, in a fixed plain layout: fields one after the other, numbers big-endian, texts as
//! long as their longest.
//!
//! Money is in cents, rates are in hundredths of a percent, dates are seconds since 1970 with 0 for none.
//! Fields of a row's key are not repeated in the row.

use super::tables;
use crate::engine::Table;

/// A text of at most `N` bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text<const N: usize> {
    /// Zeros after its end, so that texts compare as they should.
    bytes: [u8; N],
    length: u16,
}

impl<const N: usize> Text<N> {
    /// The first `N` of these bytes.
    pub fn new(from: &[u8]) -> Self {
        let length = from.len().min(N);
        let mut bytes = [0; N];
        bytes[..length].copy_from_slice(&from[..length]);
        Self { bytes, length: length as u16 }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// With zeros up to `N`.
    pub fn padded(&self) -> &[u8; N] {
        &self.bytes
    }

    pub fn contains(&self, part: &[u8]) -> bool {
        self.as_bytes().windows(part.len()).any(|window| window == part)
    }
}

impl<const N: usize> std::fmt::Debug for Text<N> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

/// Part of a row.
pub(super) trait Field: Sized {
    const BYTES: usize;
    fn write(&self, to: &mut Vec<u8>);
    /// `None` if `from` is too short or cannot be one.
    fn read(from: &mut &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Field for $number {
            const BYTES: usize = size_of::<$number>();

            #[inline]
            fn write(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_be_bytes());
            }

            #[inline]
            fn read(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_be_bytes(*bytes))
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 i32 i64);

impl<const N: usize> Field for Text<N> {
    const BYTES: usize = N + 2;

    #[inline]
    fn write(&self, to: &mut Vec<u8>) {
        self.length.write(to);
        to.extend_from_slice(&self.bytes);
    }

    #[inline]
    fn read(from: &mut &[u8]) -> Option<Self> {
        let length = u16::read(from)?;
        let (bytes, rest) = from.split_first_chunk::<N>()?;
        *from = rest;
        (usize::from(length) <= N).then_some(Self { bytes: *bytes, length })
    }
}

impl<F: Field + Copy + Default, const N: usize> Field for [F; N] {
    const BYTES: usize = N * F::BYTES;

    #[inline]
    fn write(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|field| field.write(to));
    }

    #[inline]
    fn read(from: &mut &[u8]) -> Option<Self> {
        let mut fields = [F::default(); N];
        for field in &mut fields {
            *field = F::read(from)?;
        }
        Some(fields)
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self { bytes: [0; N], length: 0 }
    }
}

/// Row of a table.
pub(super) trait Row: Field {
    const TABLE: Table;
    /// Its number of bytes is another: that is no row.
    fn decode(mut value: &[u8]) -> Option<Self> {
        let row = Self::read(&mut value)?;
        value.is_empty().then_some(row)
    }
}

macro_rules! rows {
    ($($(#[$about:meta])* $row:ident($table:expr) { $($field:ident: $kind:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) struct $row {
            $(pub $field: $kind,)*
        }

        impl Field for $row {
            const BYTES: usize = 0 $(+ <$kind as Field>::BYTES)*;

            #[inline]
            fn write(&self, to: &mut Vec<u8>) {
                $(self.$field.write(to);)*
            }

            #[inline]
            fn read(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: <$kind as Field>::read(from)?,)* })
            }
        }

        impl Row for $row {
            const TABLE: Table = $table;
        }
    )*};
}

rows! {
    /// A street, a city, a state and a zip code, in three tables.
    Address(tables::WAREHOUSE) {
        street_1: Text<20>,
        street_2: Text<20>,
        city: Text<20>,
        state: Text<2>,
        zip: Text<9>,
    }
    /// Key: [`super::keys::warehouse`].
    Warehouse(tables::WAREHOUSE) {
        name: Text<10>,
        address: Address,
        tax: u16,
        ytd: i64,
    }
    /// Key: [`super::keys::district`].
    District(tables::DISTRICT) {
        name: Text<10>,
        address: Address,
        tax: u16,
        ytd: i64,
        next_order: u32,
    }
    /// Key: [`super::keys::customer`].
    Customer(tables::CUSTOMER) {
        first: Text<16>,
        middle: Text<2>,
        last: Text<16>,
        address: Address,
        phone: Text<16>,
        since: u64,
        credit: Text<2>,
        credit_limit: i64,
        discount: u16,
        balance: i64,
        ytd_payment: i64,
        payments: u32,
        deliveries: u32,
        data: Text<500>,
    }
    /// Key: [`super::keys::history`].
    History(tables::HISTORY) {
        customer_warehouse: u32,
        customer_district: u8,
        customer: u32,
        warehouse: u32,
        district: u8,
        date: u64,
        amount: i64,
        data: Text<24>,
    }
    /// Key: [`super::keys::order`].
    Order(tables::ORDERS) {
        customer: u32,
        entered: u64,
        // 0 for none.
        carrier: u8,
        lines: u8,
        all_local: u8,
    }
    /// Key: [`super::keys::order_line`].
    OrderLine(tables::ORDER_LINE) {
        item: u32,
        supplier: u32,
        delivered: u64,
        quantity: u8,
        amount: i64,
        district_info: Text<24>,
    }
    /// Key: [`super::keys::item`].
    Item(tables::ITEM) {
        image: u32,
        name: Text<24>,
        price: u32,
        data: Text<50>,
    }
    /// Key: [`super::keys::stock`].
    Stock(tables::STOCK) {
        quantity: i32,
        districts: [Text<24>; 10],
        ytd: u64,
        orders: u32,
        remote_orders: u32,
        data: Text<50>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_as_they_were_written_and_refuse_other_lengths() {
        let line = OrderLine {
            item: 1,
            supplier: 2,
            delivered: 3,
            quantity: 4,
            amount: -5,
            district_info: Text::new(b"abc"),
        };
        let mut bytes = Vec::new();
        line.write(&mut bytes);
        assert_eq!(bytes.len(), OrderLine::BYTES);
        assert_eq!(OrderLine::decode(&bytes), Some(line));
        assert_eq!(OrderLine::decode(&bytes[1..]), None);
        bytes.push(0);
        assert_eq!(OrderLine::decode(&bytes), None);
    }

    #[test]
    fn texts_are_cut_and_compare_without_what_is_behind_them() {
        assert_eq!(Text::<2>::new(b"abc").as_bytes(), b"ab");
        assert_eq!(Text::<9>::new(b"ab"), Text::new(b"ab"));
        assert!(Text::<9>::new(b"xORIGINAL").contains(b"ORIGINAL"));
        assert!(!Text::<7>::new(b"xORIGINAL").contains(b"ORIGINAL"));
    }
}
