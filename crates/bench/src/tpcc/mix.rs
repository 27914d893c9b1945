//! Chooses the next transaction (5.2.4.2).

use super::random::Random;

/// One of the five transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Enters an order of 5 to 15 lines.
    NewOrder,
    /// A customer pays.
    Payment,
    /// Reads a customer's newest order.
    OrderStatus,
    /// Delivers the oldest new order of each district of a warehouse.
    Delivery,
    /// Counts items whose stock is low.
    StockLevel,
}

impl Kind {
    /// All of them, in the specification's order.
    pub const ALL: [Self; 5] =
        [Self::NewOrder, Self::Payment, Self::OrderStatus, Self::Delivery, Self::StockLevel];

    /// Name as in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "new-order",
            Self::Payment => "payment",
            Self::OrderStatus => "order-status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock-level",
        }
    }

    /// Cards among a hundred.
    fn cards(self) -> usize {
        match self {
            Self::NewOrder => 45,
            Self::Payment => 43,
            Self::OrderStatus | Self::Delivery | Self::StockLevel => 4,
        }
    }
}

/// A client's: it is shuffled, dealt to its end, and shuffled again.
#[derive(Clone, Debug)]
pub(super) struct Deck {
    cards: Vec<Kind>,
    dealt: usize,
}

impl Deck {
    pub fn new() -> Self {
        let cards: Vec<_> =
            Kind::ALL.iter().flat_map(|&kind| std::iter::repeat_n(kind, kind.cards())).collect();
        Self { dealt: cards.len(), cards }
    }

    pub fn deal(&mut self, random: &mut Random) -> Kind {
        if self.dealt == self.cards.len() {
            random.shuffle(&mut self.cards);
            self.dealt = 0;
        }
        self.dealt += 1;
        self.cards[self.dealt - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Stream;
    use super::*;

    #[test]
    fn each_hundred_has_the_mix_and_an_order_of_its_own() {
        let (mut deck, mut random) = (Deck::new(), Random::new(1, Stream::Client(0)));
        let mut hundred = || (0..100).map(|_| deck.deal(&mut random)).collect::<Vec<_>>();
        let (first, second) = (hundred(), hundred());
        assert_ne!(first, second);
        for dealt in [first, second] {
            let counts = Kind::ALL.map(|kind| dealt.iter().filter(|&&card| card == kind).count());
            assert_eq!(counts, [45, 43, 4, 4, 4]);
        }
    }
}
