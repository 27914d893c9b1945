//! `flashgrain vfs`: SQLite's databases in a layout that follows a drive.

use std::path::PathBuf;

use anyhow::bail;
use clap::{ArgGroup, Args, Subcommand};
use flashgrain_device::{OpenOptions, bytes_text};
use flashgrain_layout::{HotLocations, Layout};
use flashgrain_model::Estimate;
use flashgrain_profile::DeviceProfile;
use flashgrain_sqlite_vfs::convert::{self, Description};
use flashgrain_sqlite_vfs::{VolumeOptions, create_files};
use serde::Serialize;

use crate::exit::Usage;
use crate::output::{Context, print, print_json};
use crate::results;
use crate::units::parse_positive_bytes;

/// Copy SQLite databases into a layout that follows the drive, and out of it.
///
/// SQLite opens a database with a layout through the VFS `flashgrain`, which the extension
/// libflashgrain_sqlite_vfs.so brings; all others are told that it is no database. docs/sqlite.md tells how,
/// and which drives reward it.
#[derive(Debug, Args)]
pub struct VfsArguments {
    #[command(subcommand)]
    command: VfsCommand,
}

#[derive(Debug, Subcommand)]
enum VfsCommand {
    Import(ImportArguments),
    Export(ExportArguments),
    Info(InfoArguments),
    CreateVolume(CreateVolumeArguments),
}

/// Copy a plain database into a new file with a layout.
///
/// The database must not be in use, and have one name. Its pages are to begin at the hot locations of the
/// drive, which are those of a profile unless they are given.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("hot").required(true))]
struct ImportArguments {
    /// The plain database.
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The new file.
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// A folder of results, or a `profile.json`, of the drive that the new file is on.
    #[arg(long, value_name = "FILE", group = "hot")]
    profile: Option<PathBuf>,
    /// The layout in bytes, as `info` prints it.
    #[arg(long, value_name = "hot:CHUNK:OFFSET", group = "hot")]
    layout: Option<Layout>,
    /// Give each page a checksum; the database must reserve 8 bytes of each page for it.
    #[arg(long)]
    checksums: bool,
}

/// Copy a database with a layout into a new plain file, which any program can open.
///
/// The database must not be in use, and have one name.
#[derive(Debug, Args)]
struct ExportArguments {
    /// The database with a layout.
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The new file.
    #[arg(value_name = "TO")]
    to: PathBuf,
}

/// Say how a database is laid out.
#[derive(Debug, Args)]
struct InfoArguments {
    /// A database, with or without a layout.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

/// Make a volume, on which the VFS `flashgrain-device` puts databases without a file system.
///
/// Several files on several drives are striped over. The variable FLASHGRAIN_VOLUMES names volumes for
/// SQLite, as in `fast=/mnt/a/volume,/mnt/b/volume`.
#[derive(Debug, Args)]
struct CreateVolumeArguments {
    /// Files that do not exist yet.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Bytes of all files together.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    size: u64,
}

/// The output of `info --json`.
#[derive(Debug, Serialize)]
struct Info {
    /// It has the form that `--layout` takes; a plain database has none.
    layout: Option<String>,
    /// 0 of a database without pages.
    page_bytes: u64,
    database_bytes: u64,
    file_bytes: u64,
    /// Bytes of its pages that are not there, because the file is cut off.
    missing_bytes: u64,
    write_ahead_log: bool,
    /// Journals and logs that hold a part of the database.
    beside: Vec<PathBuf>,
}

pub fn run(arguments: &VfsArguments, context: &Context) -> anyhow::Result<()> {
    match &arguments.command {
        VfsCommand::Import(arguments) => {
            let layout = layout(arguments)?;
            let made = convert::import(&arguments.from, &arguments.to, layout)?;
            let size = bytes_text(made.database_bytes);
            context.note(&format!("wrote {}: {size} with the layout {layout}", arguments.to.display()));
            Ok(())
        }
        VfsCommand::Export(arguments) => {
            let made = convert::export(&arguments.from, &arguments.to)?;
            let size = bytes_text(made.database_bytes);
            context.note(&format!("wrote {}: {size}, plain", arguments.to.display()));
            Ok(())
        }
        VfsCommand::CreateVolume(arguments) => create_volume(arguments, context),
        VfsCommand::Info(arguments) => {
            let info = Info::from(convert::describe(&arguments.file)?);
            if arguments.json { print_json(&info) } else { Ok(print(&info.text())?) }
        }
    }
}

fn create_volume(arguments: &CreateVolumeArguments, context: &Context) -> anyhow::Result<()> {
    if let Some(path) = arguments.files.iter().find(|path| path.exists()) {
        bail!(Usage(format!("{} exists; remove it or choose another name", path.display())));
    }
    let (device, options) = (OpenOptions::default(), VolumeOptions::default());
    let made = create_files(&arguments.files, arguments.size, &device, options);
    let volume = made.map_err(|error| match error.kind() {
        "twice" | "small" => Usage(error.to_string()).into(),
        _ => anyhow::Error::from(error),
    })?;
    context.note(&format!("made a volume of {} on {}", bytes_text(arguments.size), volume.target()));
    Ok(())
}

/// The layout that was given, or that of the profile.
fn layout(arguments: &ImportArguments) -> anyhow::Result<Layout> {
    let layout = match (&arguments.layout, &arguments.profile) {
        (Some(layout), _) => *layout,
        (None, Some(profile)) => of_profile(&results::read_profile(profile)?)?.into(),
        (None, None) => bail!(Usage("say --profile or --layout".into())),
    };
    Ok(if arguments.checksums { layout.with_checksums() } else { layout })
}

/// The drive's hot locations, where they are not where files have their pages anyway.
fn of_profile(profile: &DeviceProfile) -> anyhow::Result<HotLocations> {
    let value = |of: &Estimate| match of {
        Estimate::Determined { value, .. } => Ok(*value as u64),
        Estimate::Undetermined { why } => {
            bail!(
                "the profile does not know the drive's hot locations: {why}; plain databases stay as they are"
            )
        }
    };
    let chunk = value(&profile.learned.chunk_bytes.estimate)?;
    match value(&profile.learned.hot_offset_bytes.estimate)? {
        0 => bail!(
            "the drive's hot locations are where chunks of {} begin, and so are the pages of plain databases: there is nothing to gain",
            bytes_text(chunk)
        ),
        offset => Ok(HotLocations::new(chunk, offset)?),
    }
}

impl From<Description> for Info {
    fn from(found: Description) -> Self {
        Self {
            layout: found.layout.map(|layout| layout.to_string()),
            page_bytes: found.page_bytes,
            database_bytes: found.database_bytes,
            file_bytes: found.file_bytes,
            missing_bytes: found.missing_bytes,
            write_ahead_log: found.has_log,
            beside: found.beside,
        }
    }
}

impl Info {
    fn text(&self) -> String {
        let journal = if self.write_ahead_log { "write-ahead log" } else { "rollback journal" };
        let mut text = format!(
            "layout    {}\npages     {}\ndatabase  {}\nfile      {}\njournal   {journal}\n",
            self.layout.as_deref().unwrap_or("plain"),
            if self.page_bytes == 0 { "none yet".into() } else { bytes_text(self.page_bytes) },
            bytes_text(self.database_bytes),
            bytes_text(self.file_bytes),
        );
        if self.missing_bytes > 0 {
            text += &format!("cut off   {} of its pages missing\n", bytes_text(self.missing_bytes));
        }
        for path in &self.beside {
            text += &format!("in use    {} holds a part of it\n", path.display());
        }
        text
    }
}
