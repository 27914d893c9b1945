//! Turns errors into messages and exit codes.

use std::io::{self, Write};
use std::process::ExitCode;

use flashgrain_device::ErrorKind;
use flashgrain_device::limits::remedy_for;

use crate::output::{Context, visible};

/// The command was asked for something that makes no sense; the text names a command that does.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

const FAILURE: u8 = 1;
const USAGE: u8 = 2;

/// Reports an error, if there is one, and returns the exit code.
pub fn code(result: &anyhow::Result<()>, context: &Context) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if is_broken_pipe(error) {
        // The reader of the output has closed it, having seen enough.
        return ExitCode::SUCCESS;
    }
    if let Some(flashgrain_profile::Error::Interrupted) = error.downcast_ref() {
        context.note(&format!("interrupted: {}", context.interrupt.left()));
        return ExitCode::from(context.interrupt.exit_code());
    }
    // If standard error fails, there is no way to report it.
    let _ = writeln!(io::stderr(), "flashgrain: {}", visible(&message(error)));
    ExitCode::from(if is_usage(error) { USAGE } else { FAILURE })
}

/// The error with those of its causes that its own text does not already quote.
fn message(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    let remedy = error.chain().filter_map(|cause| cause.downcast_ref()).find_map(remedy_for);
    match remedy.filter(|remedy| !text.contains(remedy)) {
        Some(remedy) => format!("{text}: {remedy}"),
        None => text,
    }
}

fn is_usage(error: &anyhow::Error) -> bool {
    use flashgrain_profile::Error as ProfileError;
    if error.is::<Usage>() {
        return true;
    }
    if let Some(store) = error.downcast_ref::<flashgrain::Error>() {
        return store.kind() == flashgrain::ErrorKind::Argument;
    }
    if let Some(simulated) = error.downcast_ref::<flashgrain_ssdsim::Error>() {
        use flashgrain_ssdsim::Error as SimError;
        // All others are descriptions and names that make no drive.
        return !matches!(simulated, SimError::File { .. } | SimError::Device(_));
    }
    let device = match error.downcast_ref::<ProfileError>() {
        Some(ProfileError::Argument(_)) => return true,
        Some(ProfileError::Device(device)) => Some(device),
        _ => error.downcast_ref::<flashgrain_device::Error>(),
    };
    device.is_some_and(|device| matches!(device.kind(), ErrorKind::Request | ErrorKind::Target))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
