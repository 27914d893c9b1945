//! Cycles in directed graphs.

use std::collections::VecDeque;

/// Edges with labels between nodes that are numbers.
#[derive(Debug)]
pub(super) struct Graph<L> {
    edges: Vec<Vec<(usize, L)>>,
}

/// A node and the label of the edge from there to the next one; the last edge leads to the first node.
pub(super) type Cycle<L> = Vec<(usize, L)>;

/// Nodes of a component whose shortest cycle is looked for, at most.
const LOOKED_AT_MAX: usize = 500;

impl<L: Copy> Graph<L> {
    pub fn new(nodes: usize) -> Self {
        Self { edges: vec![Vec::new(); nodes] }
    }

    pub fn add(&mut self, from: usize, to: usize, label: L) {
        self.edges[from].push((to, label));
    }

    /// One cycle, as short as can be, of each strongly connected component that has one.
    pub fn cycles(&self) -> Vec<Cycle<L>> {
        let component = self.components();
        let mut done = vec![false; self.edges.len()];
        let mut found = Vec::new();
        for start in 0..self.edges.len() {
            if std::mem::replace(&mut done[component[start]], true) {
                continue;
            }
            let members = (start..self.edges.len()).filter(|node| component[*node] == component[start]);
            // A few will do where everything depends on everything.
            let cycles = members.take(LOOKED_AT_MAX).filter_map(|member| self.shortest(member, &component));
            found.extend(cycles.min_by_key(Vec::len));
        }
        found
    }

    /// The shortest cycle through `start` within its component.
    fn shortest(&self, start: usize, component: &[usize]) -> Option<Cycle<L>> {
        let mut from: Vec<Option<(usize, L)>> = vec![None; self.edges.len()];
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for (to, label) in &self.edges[node] {
                if component[*to] != component[start] || from[*to].is_some() {
                    continue;
                }
                from[*to] = Some((node, *label));
                if *to != start {
                    queue.push_back(*to);
                    continue;
                }
                let mut cycle = Vec::new();
                let mut at = start;
                while let Some((before, label)) = from[at] {
                    cycle.push((before, label));
                    at = before;
                    if at == start {
                        break;
                    }
                }
                cycle.reverse();
                return Some(cycle);
            }
        }
        None
    }

    /// To which strongly connected component each node belongs (Tarjan, 1972, without recursion).
    fn components(&self) -> Vec<usize> {
        const NONE: usize = usize::MAX;
        let count = self.edges.len();
        let (mut number, mut low, mut component) = (vec![NONE; count], vec![0; count], vec![NONE; count]);
        let (mut next, mut components, mut stack) = (0, 0, Vec::new());
        for root in 0..count {
            let mut path = if number[root] == NONE { vec![(root, 0)] } else { Vec::new() };
            while let Some((node, edge)) = path.last_mut() {
                let node = *node;
                if *edge == 0 {
                    (number[node], low[node]) = (next, next);
                    next += 1;
                    stack.push(node);
                }
                if let Some((to, _)) = self.edges[node].get(*edge) {
                    *edge += 1;
                    if number[*to] == NONE {
                        path.push((*to, 0));
                    } else if component[*to] == NONE {
                        low[node] = low[node].min(number[*to]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    low[*parent] = low[*parent].min(low[node]);
                }
                if low[node] == number[node] {
                    while let Some(member) = stack.pop() {
                        component[member] = components;
                        if member == node {
                            break;
                        }
                    }
                    components += 1;
                }
            }
        }
        component
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: usize, edges: &[(usize, usize)]) -> Graph<()> {
        let mut graph = Graph::new(nodes);
        edges.iter().for_each(|(from, to)| graph.add(*from, *to, ()));
        graph
    }

    #[test]
    fn the_shortest_cycle_of_each_component_is_found() {
        let edges = [(0, 1), (1, 2), (2, 3), (3, 0), (2, 1), (3, 4), (4, 5), (5, 6), (6, 4), (6, 7), (8, 0)];
        let cycles = graph(9, &edges).cycles();
        let nodes: Vec<Vec<usize>> =
            cycles.iter().map(|cycle| cycle.iter().map(|(node, ())| *node).collect()).collect();
        assert_eq!(nodes, [vec![1, 2], vec![4, 5, 6]]);
    }

    #[test]
    fn without_a_cycle_none_is_found() {
        let edges: Vec<_> =
            (0..1000).flat_map(|node| [(node, node + 1), (node, (node + 7).min(1001))]).collect();
        assert!(graph(1002, &edges).cycles().is_empty());
        let mut closed = edges;
        closed.push((1001, 0));
        assert_eq!(graph(1002, &closed).cycles().len(), 1);
    }
}
