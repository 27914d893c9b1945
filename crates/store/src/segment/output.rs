//! The destination of the images of all [gatherings](super::gathering): buffers, segments, and the writer of
//! units.

use super::changes::Changes;
use super::space::Space;
use super::stats::{WriteCounters, add};
use super::unit::{BufferSlot, Buffers, Open, Ready, Rules};
use super::writing::UnitWriter;
use super::{Appended, NotAppended, Stream, UnitSequence};
use crate::Error;
use crate::layout::Layout;
use crate::sync::Arc;

/// See the module.
pub(super) struct Output {
    unit_bytes: u32,
    rules: Rules,
    space: Arc<Space>,
    buffers: Arc<Buffers>,
    writer: Arc<UnitWriter>,
    changes: Arc<Changes>,
    counters: WriteCounters,
}

impl Output {
    pub fn new(
        layout: &Layout,
        (space, buffers): (&Arc<Space>, &Arc<Buffers>),
        (writer, changes): (&Arc<UnitWriter>, &Arc<Changes>),
    ) -> Self {
        Self {
            unit_bytes: layout.unit_bytes,
            rules: Rules {
                pack_bytes: layout.pack_bytes.min(layout.unit_bytes),
                sector_bytes: layout.sector_bytes,
            },
            space: Arc::clone(space),
            buffers: Arc::clone(buffers),
            writer: Arc::clone(writer),
            changes: Arc::clone(changes),
            counters: WriteCounters::default(),
        }
    }

    /// Bytes of a write unit.
    pub fn unit_bytes(&self) -> u32 {
        self.unit_bytes
    }

    pub fn space(&self) -> &Space {
        &self.space
    }

    pub fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    pub fn writer(&self) -> &UnitWriter {
        &self.writer
    }

    pub fn counters(&self) -> &WriteCounters {
        &self.counters
    }

    /// Checks that an image of `bytes` bytes fits into one unit.
    pub fn check_fits(&self, bytes: u64) -> Result<(), NotAppended> {
        let unit = u64::from(self.unit_bytes);
        if bytes <= unit {
            return Ok(());
        }
        let problem = format!("a page of {bytes} bytes does not fit into a write unit of {unit}");
        Err(NotAppended::Failed(Error::Options(problem)))
    }

    /// Takes a segment for images of this stream.
    pub fn open_segment(&self, stream: Stream) -> Result<usize, NotAppended> {
        let opened = self.space.open(stream, self.buffers.next_sequence());
        self.changes.segments_changed();
        opened.ok_or(NotAppended::NoSegment)
    }

    /// A unit in a segment from its byte `next` on, up to a multiple of the unit.
    pub fn open_unit(&self, segment: usize, next: u64) -> Result<Open, NotAppended> {
        let offset = self.space.range(segment).start + next;
        let length = (next + 1).next_multiple_of(self.unit_bytes.into()) - next;
        let sequence = self.buffers.take(offset).ok_or(NotAppended::NoBuffer)?;
        Ok(Open::new(sequence, offset, length as u32, self.rules))
    }

    /// Has a unit written if it is ready.
    pub fn send(&self, ready: Option<Ready>) {
        self.writer.send(ready);
    }

    /// Has `make` put an image into its place, and the unit written if it lacked nothing else.
    pub fn complete(&self, slot: &BufferSlot, make: impl FnOnce(&mut [u8])) -> Appended {
        make(self.buffers.image(slot));
        self.send(self.buffers.end_copy(slot.unit));
        Appended { location: slot.location, unit: slot.unit }
    }

    /// Counts the bytes of a request to the device.
    pub fn count(&self, stream: Stream, offset_bytes: u64, length_bytes: u32) {
        let bytes = u64::from(length_bytes);
        add(&self.counters.by_stream_bytes[stream as usize], bytes);
        let first = self.space.sizes().device_bytes(0);
        let is_whole = length_bytes == self.unit_bytes && (offset_bytes - first).is_multiple_of(bytes);
        let counter =
            if is_whole { &self.counters.full_unit_bytes } else { &self.counters.partial_unit_bytes };
        add(counter, bytes);
    }

    /// Fills a part of a unit with zeros.
    pub fn zero(&self, unit: UnitSequence, range: std::ops::Range<u32>) {
        self.buffers.zero(unit, range);
    }
}
