//! Weight-balanced rebuilding (Theorem 9 of the dictionaries paper).
//!
//! The weight of a node is the number of basement nodes below it. A node of height h has a weight within
//! `1 ± 1/log F` of `F^h` leaves', so that all nodes have close to F children, and a query goes down few
//! levels. If a node's weight leaves that interval, the paper rebuilds the whole subtree of its parent. Here
//! only the *border between the node and its neighbours* is drawn anew: as few of them as can have equal
//! weights well within the interval get their children, and the messages for these, in equal shares. Their
//! children stay as they are, as those are within their own intervals. So a rebuilding reads and writes a few
//! parts, which are one node of the parent, and no flush waits for more. The paper's bounds need no more: a
//! node's weight changes by a constant part of itself between two of its rebuildings.

use super::content::{Content, Fitting, Pivot};
use super::levels::{LEVEL_MAX, LEVEL_MIN};
use super::messages::Messages;
use super::pages::Pages;
use super::part::{self, Part};
use crate::Error;
use crate::buffered::RangeTombstones;
use crate::header::{PageId, PageKind};
use crate::pool::{Access, Denied, OptimisticGuard, Reserved};

/// A node's pivots take this part of the space that its part has for them.
const PIVOTS_FILL_MAX: f64 = 0.75;

/// A rebuilding has at most this part of the cache, but at least memory for `PARTS_MIN` parts.
const CACHE_DIVISOR: u64 = 8;
const PARTS_MIN: u64 = 3;

/// Children of a node that are rebuilt.
struct Window<'a> {
    first: usize,
    parts: Vec<(OptimisticGuard<'a>, Content)>,
}

impl Window<'_> {
    fn end(&self) -> usize {
        self.first + self.parts.len()
    }
}

impl Pages {
    /// The share of a child in the weight of its parent; the intended share is 1. Long keys take more room
    /// than their children's weight.
    fn share(&self, level: u16, pivot: &Pivot) -> f64 {
        let of_weight = f64::from(pivot.weight) / self.shape.weight(level);
        let of_room = pivot.page_bytes() as f64 / (self.shape.pivots_bytes_max() as f64 * PIVOTS_FILL_MAX);
        of_weight.max(of_room)
    }

    fn shares(&self, content: &Content) -> f64 {
        content.pivots.iter().map(|pivot| self.share(content.level, pivot)).sum()
    }

    fn must_be_split(&self, content: &Content) -> bool {
        self.must_split(content.level, &content.summary())
    }

    /// Notes the weight of a child, if it is still one, that may have changed, and rebuilds it if that is too
    /// large or too small.
    pub(super) fn balance(&self, id: PageId, level: u16, child: PageId) -> Result<(), Error> {
        let pivot_and_weight = |part: Part<'_>| {
            let pivot = (0..part.pivots()).find(|pivot| part.child(*pivot) == child)?;
            Some((pivot, part.weight_of(pivot), part.pivots()))
        };
        let (_, known) = self.look((id, level), Access::Normal, pivot_and_weight)?;
        let Some((pivot, weight, pivots)) = known else { return Ok(()) };
        let own = self.summary(child, level - 1)?;
        if own.weight != weight {
            self.set_weight(id, pivot, own.weight)?;
        }
        let is_light = self.shape.is_too_light(level - 1, own.weight) && pivots > 1;
        let is_heavy = self.must_split(level - 1, &own);
        let is_rebuilt = (is_heavy || is_light) && self.rebuild(id, level, pivot as usize, is_heavy)?;
        if is_heavy && !is_rebuilt {
            return self.split(id, level, pivot as usize);
        }
        Ok(())
    }

    fn set_weight(&self, id: PageId, pivot: u32, weight: u32) -> Result<(), Error> {
        let set = |guard: &OptimisticGuard<'_>| {
            let section = self.shared.pool.section();
            part::set_weight(section.lock(guard)?.page(), pivot, weight);
            Ok(())
        };
        loop {
            match set(&self.fresh(&[id])?[0]) {
                Ok(()) => return Ok(()),
                Err(denied) => self.shared.pool.images.recover(denied)?,
            }
        }
    }

    /// Makes the root a level higher or lower, if necessary.
    pub(super) fn balance_root(&self) -> Result<(), Error> {
        let level = self.root_level()?;
        let (guard, content) = self.load(self.root, level, Access::Normal)?;
        if self.must_be_split(&content) {
            self.raise_root()?;
            let level = self.root_level()?;
            let (_, root) = self.load(self.root, level, Access::Normal)?;
            let first = root.pivots.first().filter(|_| level > LEVEL_MIN);
            return first.map_or(Ok(()), |first| self.balance(self.root, level, first.child));
        }
        if level > LEVEL_MIN && content.pivots.len() == 1 {
            return self.lower(&guard, &content);
        }
        Ok(())
    }

    /// Moves the root's content to a new page, its only child, and makes the root a level higher.
    pub(super) fn raise_root(&self) -> Result<(), Error> {
        let level = self.root_level()?;
        if level >= LEVEL_MAX {
            return Err(self.no_room("more levels than a tree has", 0));
        }
        let (guard, content) = self.load(self.root, level, Access::Normal)?;
        self.raise(&guard, content)?.or_else(|denied| self.shared.pool.images.recover(denied))
    }

    /// Moves the root's content to a new page, its only child.
    fn raise(&self, root: &OptimisticGuard<'_>, content: Content) -> Result<Result<(), Denied>, Error> {
        let memory = self.shared.pool.reserve(self.shape.part_class)?;
        let root = self.fresh(&[root.id()])?;
        let mut top = Content { level: content.level + 1, ..Content::default() };
        top.pivots.push(Pivot { key: Vec::new(), child: PageId(0), weight: content.weight() });
        let below = self.fit(&content)?;
        let section = self.shared.pool.section();
        let upper = match section.lock(&root[0]) {
            Ok(locked) => locked,
            Err(denied) => return Ok(Err(denied)),
        };
        let lower = section.create(memory, PageKind::Part, false);
        part::write(lower.page(), &below);
        top.pivots.iter_mut().for_each(|pivot| pivot.child = lower.id());
        if let Some(top) = top.fit(self.shape.part_bytes()) {
            part::write(upper.page(), &top);
        }
        Ok(Ok(()))
    }

    /// Moves the content of the root's only child into the root, if it has room there.
    fn lower(&self, root: &OptimisticGuard<'_>, content: &Content) -> Result<(), Error> {
        self.ahead.wait_for_room(content.pivots[0].child, content.level - 1)?;
        let (below, mut child) = self.load(content.pivots[0].child, content.level - 1, Access::Normal)?;
        if content.buffered_bytes() > 0 || child.page_bytes() > self.filled_bytes() {
            return Ok(());
        }
        if let Some(first) = child.pivots.first_mut() {
            first.key.clear();
        }
        let lowered = self.write_and_free((root, &self.fit(&child)?), &below);
        lowered.or_else(|denied| self.shared.pool.images.recover(denied))
    }

    /// Draws the borders between a child and some of its neighbours anew, if that makes it better and there
    /// is room for it. Light nodes stay if they would not become fewer, or would have little room left: a
    /// flush would rebuild them for ever.
    fn rebuild(&self, id: PageId, level: u16, pivot: usize, is_heavy: bool) -> Result<bool, Error> {
        let (_, content) = self.load(id, level, Access::Normal)?;
        let (window, count) = self.window(&content, pivot, is_heavy)?;
        // One new node at a time: a small cache has no memory for more. A node that is still too heavy is
        // rebuilt next.
        let most = window.parts.len() + 1;
        let mut count = count.min(most);
        let all = self.together(&content, &window);
        let mut nodes = self.divided(&all, count);
        // Children are not cut in two: this number of nodes may be too small for equal shares.
        while nodes.iter().any(|node| self.must_be_split(node)) && count < all.pivots.len().min(most) {
            count += 1;
            nodes = self.divided(&all, count);
        }
        let filled_bytes = self.filled_bytes();
        let is_better = match is_heavy {
            true => !nodes.iter().any(|node| self.must_be_split(node)),
            false => nodes.len() < window.parts.len(),
        };
        let most_bytes = if is_heavy { filled_bytes } else { filled_bytes / 2 };
        let has_room = nodes.iter().all(|node| node.page_bytes() <= most_bytes);
        Ok(is_better && has_room && self.put_in_place((id, content), window, nodes)?)
    }

    /// Splits a child with several children of its own into two nodes. There is always room for that: the
    /// parent has room for a pivot, or must be split first.
    fn split(&self, id: PageId, level: u16, pivot: usize) -> Result<(), Error> {
        let (_, content) = self.load(id, level, Access::Normal)?;
        let Some(child) = content.pivots.get(pivot).map(|pivot| pivot.child) else { return Ok(()) };
        self.ahead.wait_for_room(child, level - 1)?;
        let window = Window { first: pivot, parts: vec![self.load(child, level - 1, Access::Normal)?] };
        let all = self.together(&content, &window);
        let Some(border) = middle_border(&all) else { return Ok(()) };
        let nodes = vec![node_of(&all, 0, Some(border)), node_of(&all, border, None)];
        debug_assert!(
            nodes.iter().all(|node| node.pivots.len() < all.pivots.len()),
            "a split divides pivots"
        );
        let page_bytes = content.page_bytes();
        match self.put_in_place((id, content), window, nodes)? {
            true => Ok(()),
            false => Err(self.no_room("a node", page_bytes)),
        }
    }

    /// The joint content of some children of a node.
    fn together(&self, content: &Content, window: &Window<'_>) -> Content {
        let mut all = Content { level: content.level - 1, ..Content::default() };
        for (place, (_, child)) in window.parts.iter().enumerate() {
            let mut pivots = child.pivots.clone();
            if let (Some(first), Some(own)) = (pivots.first_mut(), content.pivots.get(window.first + place)) {
                first.key.clone_from(&own.key);
            }
            all.pivots.extend(pivots);
            all.messages.extend(&child.messages, 0..child.messages.len());
            all.ranges.extend(&child.ranges);
        }
        all
    }

    /// Replaces some children of a node by other nodes; `false` if there is no room for them, and nothing has
    /// changed.
    fn put_in_place<'a>(
        &'a self,
        (id, mut content): (PageId, Content),
        mut window: Window<'a>,
        nodes: Vec<Content>,
    ) -> Result<bool, Error> {
        let pivot_of = |node: &Content| {
            let key = node.pivots.first().map_or_else(Vec::new, |first| first.key.clone());
            Pivot { key, child: PageId(0), weight: node.weight() }
        };
        content.pivots.splice(window.first..window.end(), nodes.iter().map(pivot_of));
        let part_bytes = self.shape.part_bytes();
        let fitting: Vec<_> = nodes.iter().filter_map(|node| node.fit(part_bytes)).collect();
        if fitting.len() < nodes.len() || content.page_bytes() > part_bytes {
            return Ok(false);
        }
        let new = nodes.len().saturating_sub(window.parts.len());
        let reserved =
            (0..new).map(|_| self.shared.pool.reserve(self.shape.part_class)).collect::<Result<_, _>>()?;
        self.counters.rebuilt(content.level - 1);
        let ids: Vec<PageId> =
            std::iter::once(id).chain(window.parts.iter().map(|(guard, _)| guard.id())).collect();
        let guards = self.fresh(&ids)?;
        window.parts.iter_mut().zip(guards.iter().skip(1)).for_each(|(part, guard)| part.0 = *guard);
        let written = self.write_rebuilt((&guards[0], content), &window, &fitting, reserved);
        written.or_else(|denied| self.shared.pool.images.recover(denied)).map(|()| true)
    }

    /// Children that are rebuilt together, at most: there is memory for their parts, their parent's and, if
    /// one of them is too heavy, a new one. This limits only caches of a few pages.
    fn rebuilt_max(&self, is_heavy: bool) -> usize {
        let budget_bytes = self.shared.pool.pages.budget_bytes();
        let parts = (budget_bytes / CACHE_DIVISOR / self.shape.part_bytes()).max(PARTS_MIN);
        parts as usize - 1 - usize::from(is_heavy)
    }

    /// The fewest children around one that can have equal shares, each close to 1, and how many they become.
    fn window(&self, content: &Content, pivot: usize, is_heavy: bool) -> Result<(Window<'_>, usize), Error> {
        let near = self.shape.tolerance() / 2.0;
        let load = |number: usize| {
            let child = content.pivots[number].child;
            self.ahead.wait_for_room(child, content.level - 1)?;
            self.load(child, content.level - 1, Access::Normal)
        };
        let mut window = Window { first: pivot, parts: vec![load(pivot)?] };
        loop {
            let sum: f64 = window.parts.iter().map(|(_, child)| self.shares(child)).sum();
            // If all children are in the window, at least none is too heavy any more.
            let count = sum.round().max((sum / (1.0 + self.shape.tolerance())).ceil()).max(1.0);
            let is_near = (sum / count - 1.0).abs() <= near;
            let is_all = window.parts.len() >= content.pivots.len().min(self.rebuilt_max(is_heavy));
            if is_near || is_all {
                return Ok((window, count as usize));
            }
            // To both sides in turn, as far as there are some.
            let to_right = window.parts.len() % 2 == 1;
            if window.end() < content.pivots.len() && (to_right || window.first == 0) {
                window.parts.push(load(window.end())?);
            } else {
                window.first -= 1;
                window.parts.insert(0, load(window.first)?);
            }
        }
    }

    /// Divides children into `count` nodes of about the same shares, with the messages on their way to them.
    fn divided(&self, all: &Content, count: usize) -> Vec<Content> {
        let each = self.shares(all) / count as f64;
        let (mut nodes, mut start, mut sum) = (Vec::with_capacity(count), 0, 0.0);
        for (number, pivot) in all.pivots.iter().enumerate() {
            let share = self.share(all.level, pivot);
            let border = each * (nodes.len() + 1) as f64;
            // A border lies where it is nearest to where it should be.
            if number > start && sum + share / 2.0 > border && nodes.len() + 1 < count {
                nodes.push(node_of(all, start, Some(number)));
                start = number;
            }
            sum += share;
        }
        nodes.push(node_of(all, start, None));
        nodes
    }

    fn write_rebuilt(
        &self,
        (guard, mut content): (&OptimisticGuard<'_>, Content),
        window: &Window<'_>,
        nodes: &[Fitting<'_>],
        reserved: Vec<Reserved<'_>>,
    ) -> Result<(), Denied> {
        let section = self.shared.pool.section();
        let upper = section.lock(guard)?;
        let mut pages = Vec::with_capacity(window.parts.len());
        for (child, _) in &window.parts {
            pages.push(section.lock(child)?);
        }
        let (mut pages, mut reserved) = (pages.into_iter(), reserved.into_iter());
        for (node, pivot) in nodes.iter().zip(content.pivots.iter_mut().skip(window.first)) {
            let new = || reserved.next().map(|memory| section.create(memory, PageKind::Part, false));
            let Some(page) = pages.next().or_else(new) else { break };
            part::write(page.page(), node);
            pivot.child = page.id();
        }
        pages.for_each(|page| section.free(page));
        // Only the numbers of pages have changed since the check for room.
        if let Some(content) = content.fit(self.shape.part_bytes()) {
            part::write(upper.page(), &content);
        }
        Ok(())
    }
}

/// The first pivot of the second of two halves of a node, so that the longer half is as short as can be;
/// `None` if it has one child.
fn middle_border(all: &Content) -> Option<usize> {
    let mut bytes: Vec<u64> = all.pivots.iter().map(Pivot::page_bytes).collect();
    for group in all.groups() {
        bytes[group.pivot] += group.bytes;
    }
    let (total, mut before): (u64, u64) = (bytes.iter().sum(), 0);
    let longer_of = |border: usize| {
        before += bytes[border - 1];
        (before.max(total - before), border)
    };
    (1..all.pivots.len()).map(longer_of).min().map(|(_, border)| border)
}

/// A node of some of the children, from one up to and without another one.
fn node_of(all: &Content, start: usize, end: Option<usize>) -> Content {
    let lower = all.pivots.get(start).map_or(&[][..], |pivot| &pivot.key);
    let upper = end.and_then(|end| all.pivots.get(end)).map(|pivot| pivot.key.as_slice());
    let within = match start {
        0 => 0..all.messages.within(&[], upper).end,
        _ if planted!(BorderMessageLost) => all.messages.within(&crate::index::behind(lower), upper),
        _ => all.messages.within(lower, upper),
    };
    let mut messages = Messages::default();
    messages.extend(&all.messages, within);
    let ranges = match all.ranges.is_empty() {
        true => RangeTombstones::default(),
        false => all.ranges.between(if start == 0 { &[] } else { lower }, upper),
    };
    Content {
        level: all.level,
        pivots: all.pivots[start..end.unwrap_or(all.pivots.len())].to_vec(),
        ranges,
        messages,
    }
}
