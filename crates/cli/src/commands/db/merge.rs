//! Merging: writes an operand over a key's value.

use clap::{Args, ValueEnum};
use flashgrain::{AddOperator, AppendOperator, IndexKind};

use super::options::{TreeOptions, with_tree};
use crate::exit::Usage;
use crate::output::Context;

/// The merge operators that every store knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Operator {
    /// Adds numbers of eight bytes, little-endian: a counter. The operand is given in decimal.
    Add,
    /// Appends bytes.
    Append,
}

impl Operator {
    /// The name under which trees know it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => AddOperator::NAME,
            Self::Append => AppendOperator::NAME,
        }
    }
}

#[derive(Debug, Args)]
pub struct MergeArguments {
    #[command(flatten)]
    tree: TreeOptions,
    /// The key.
    #[arg(value_name = "KEY")]
    key: String,
    /// The operand: of a tree that adds, a whole number.
    #[arg(value_name = "OPERAND", allow_hyphen_values = true)]
    operand: String,
    /// Make an LSM-tree with this operator if there is no tree of that name.
    #[arg(long, value_enum)]
    operator: Option<Operator>,
}

pub fn merge(arguments: &MergeArguments, context: &Context) -> anyhow::Result<()> {
    let MergeArguments { tree: options, key, operand, operator } = arguments;
    let key = options.notation.parse(key)?;
    let db = options.store.open(context)?;
    let new = match operator {
        Some(operator) => flashgrain::TreeOptions::new().kind(IndexKind::Lsm).merge_operator(operator.name()),
        None => db.existing_tree(&options.tree)?.options(),
    };
    with_tree(&db, (&options.tree, &new), |tree| {
        let adds = tree.options().name_of_merge_operator() == Some(AddOperator::NAME);
        let operand = if adds { number(operand)? } else { options.notation.parse(operand)? };
        Ok(tree.merge(&key, operand)?)
    })?;
    Ok(db.close()?)
}

/// A number as the adding operator has it.
fn number(text: &str) -> Result<Vec<u8>, Usage> {
    let signed = text.parse::<i64>().map(i64::to_le_bytes);
    let bytes = signed.or_else(|_| text.parse::<u64>().map(u64::to_le_bytes));
    bytes.map(Vec::from).map_err(|_| Usage(format!("`{text}` is no whole number of 64 bits")))
}
