//! The open segment and the open unit of a [target](Target). Its next image goes there.
//!
//! 1. [`Gathering::place`] takes a place in the open unit; it opens a unit, and a segment, if there is none.
//! 2. [`Gathering::seal`] ends the unit: it is written when the last image has been copied into it. The next
//!    unit begins where it ends.
//! 3. A segment is closed when its last byte belongs to a unit, or with [`Gathering::close_behind`].

use super::output::Output;
use super::policy::Target;
use super::unit::{BufferSlot, Open, Shape};
use super::{Location, NotAppended, Stream, UnitSequence};

/// Shortest rest of a unit that is sealed early. A shorter one is written along, as hardly an image would fit
/// into it.
const REST_BYTES: u32 = 8 << 10;

/// See the module.
pub(super) struct Gathering {
    target: Target,
    /// The open segment, and its first byte that belongs to no unit.
    segment: Option<(usize, u64)>,
    unit: Option<Open>,
}

impl Gathering {
    pub fn new(target: Target) -> Self {
        Self { target, segment: None, unit: None }
    }

    /// The unit that is open.
    pub fn open_unit(&self) -> Option<UnitSequence> {
        self.unit.as_ref().map(|open| open.unit)
    }

    /// The unit that is open, and how many bytes of it are taken.
    pub fn filled(&self) -> Option<(UnitSequence, u32)> {
        self.unit.as_ref().map(|open| (open.unit, open.taken_bytes()))
    }

    /// Takes a place for an image in the open unit, opening another one if need be, and a segment that images
    /// of this stream may have. The image is live from now on; its page was last changed at the store's age
    /// `changed_at`, or just now.
    pub fn place(
        &mut self,
        output: &Output,
        stream: Stream,
        shape: Shape,
        changed_at: Option<u64>,
    ) -> Result<BufferSlot, NotAppended> {
        output.check_fits(u64::from(shape.bytes))?;
        loop {
            let Some(unit) = &mut self.unit else {
                self.open(output, stream)?;
                continue;
            };
            let Some((start, zeros)) = unit.place(shape) else {
                self.seal(output, true);
                continue;
            };
            let location = Location::new(unit.offset_bytes + u64::from(start), shape.bytes, shape.class);
            let slot = BufferSlot { unit: unit.unit, location, start };
            output.zero(slot.unit, zeros);
            output.buffers().begin_copy(slot.unit);
            if self.target != Target::Map {
                output.space().add_live(location, changed_at);
            }
            return Ok(slot);
        }
    }

    fn open(&mut self, output: &Output, stream: Stream) -> Result<(), NotAppended> {
        if !output.buffers().has_free() {
            return Err(NotAppended::NoBuffer);
        }
        let (segment, next) = match self.segment {
            Some(open) => open,
            None => (output.open_segment(stream)?, 0),
        };
        self.segment = Some((segment, next));
        self.unit = Some(output.open_unit(segment, next)?);
        Ok(())
    }

    /// Ends the open unit, if there is one: with zeros to its end if it is `full`, else where its last image
    /// ends; the next one begins there.
    pub fn seal(&mut self, output: &Output, full: bool) {
        let (Some(open), Some((segment, next))) = (self.unit.take(), self.segment) else { return };
        let (stream, taken) = (self.target.stream(), open.taken_bytes());
        let is_rest_small = taken > 0 && open.length_bytes() - taken < REST_BYTES;
        let length = if full || is_rest_small { open.length_bytes() } else { taken };
        if !full && stream != Stream::Moved {
            output.space().add_padding(segment, length.saturating_sub(open.image_bytes()).into());
        }
        let next = next + u64::from(length);
        self.segment = Some((segment, next));
        if next == output.space().sizes().length(segment) {
            self.segment = None;
            output.space().close(segment, stream);
        }
        if length == 0 {
            output.buffers().written(open.unit);
            return;
        }
        for range in open.unused() {
            output.zero(open.unit, range);
        }
        output.zero(open.unit, taken..length);
        output.count(stream, open.offset_bytes, length);
        output.send(output.buffers().seal(open.unit, length));
    }

    /// Closes the open segment if it is one after the first `keep`. It returns whether it was.
    pub fn close_behind(&mut self, output: &Output, keep: usize) -> bool {
        let is_behind = self.segment.is_some_and(|(segment, _)| segment >= keep);
        if is_behind {
            self.seal(output, false);
            if let Some((segment, _)) = self.segment.take() {
                output.space().close(segment, self.target.stream());
            }
        }
        is_behind
    }
}
