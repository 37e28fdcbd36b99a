//! A Redis Cluster of a test's own: servers on free ports that share the slots.

use crate::common::{wait_until, wait_until_seen};
use crate::redis_server::{Redis, Server, try_ask};

/// Servers that are one cluster. The masters share the slots in equal parts.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Redis>,
}

/// The slots of a cluster.
const SLOTS: u16 = 16_384;

impl Cluster {
    /// Starts the masters, and waits until they agree on the slots. Nothing where there is no
    /// server.
    pub(crate) fn start(masters: usize, server: impl Fn() -> Option<Server>) -> Option<Self> {
        let mut cluster = Self { nodes: Vec::new() };
        for _ in 0..masters {
            cluster.nodes.push(node(server()?)?);
        }
        let each = SLOTS / masters as u16;
        for (i, node) in (0..).zip(&cluster.nodes) {
            let last = if usize::from(i) + 1 == masters {
                SLOTS - 1
            } else {
                each * (i + 1) - 1
            };
            // Nodes that meet with one epoch of several would change it while the test runs.
            node.ask::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(i + 1).to_string()]);
            node.ask::<()>(&["CLUSTER", "ADDSLOTSRANGE", &(each * i).to_string(), &last.to_string()]);
        }
        for node in &cluster.nodes[1..] {
            cluster.meet(node);
        }
        cluster.agree();
        Some(cluster)
    }

    /// Adds a replica of a node, and waits until it has the node's data. Returns its number.
    pub(crate) fn add_replica(&mut self, of: usize, server: Server) -> usize {
        let replica = node(server).unwrap();
        self.meet(&replica);
        let master = self.id(of);
        wait_until(|| try_ask::<()>(&mut replica.connection(), &["CLUSTER", "REPLICATE", &master]).is_ok());
        wait_until(|| {
            replica
                .ask::<String>(&["INFO", "replication"])
                .contains("master_link_status:up")
        });
        self.nodes.push(replica);
        self.agree();
        self.nodes.len() - 1
    }

    fn meet(&self, node: &Redis) {
        let port = node.port().to_string();
        self.nodes[0].ask::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port]);
    }

    /// Waits until all nodes have one view: who is there, with which slots, since which epoch. (A
    /// node that takes a slot must know the epoch of the node that gives it.)
    fn agree(&self) {
        let views = || self.nodes.iter().map(view).collect::<Vec<_>>();
        wait_until_seen(views, |views| {
            views[0].len() == self.nodes.len() && views.iter().all(|view| *view == views[0])
        });
        let infos = || -> Vec<String> { self.nodes.iter().map(|node| node.ask(&["CLUSTER", "INFO"])).collect() };
        wait_until_seen(infos, |infos| {
            let is_ok =
                |info: &String| info.contains("cluster_state:ok") && info.contains("cluster_slots_assigned:16384");
            infos.iter().all(is_ok)
        });
    }

    fn id(&self, node: usize) -> String {
        self.nodes[node].ask(&["CLUSTER", "MYID"])
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Redis::url).collect()
    }

    pub(crate) fn slot_of(&self, key: &str) -> u16 {
        self.nodes[0].ask(&["CLUSTER", "KEYSLOT", key])
    }

    /// The node that has a slot by the first shares.
    pub(crate) fn first_owner(&self, slot: u16, masters: usize) -> usize {
        usize::from(slot / (SLOTS / masters as u16)).min(masters - 1)
    }

    /// A name that begins so, in a slot that this node has by the first shares.
    pub(crate) fn name_at(&self, node: usize, masters: usize, begin: &str) -> String {
        let names = (0..1000).map(|i| format!("{begin}{i}"));
        let mut names = names.filter(|name| self.first_owner(self.slot_of(name), masters) == node);
        names.next().unwrap()
    }

    /// Begins to move a slot: keys that are not at `from` are asked for at `to`.
    pub(crate) fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        self.nodes[to].ask::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.id(from)]);
        self.nodes[from].ask::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.id(to)]);
    }

    /// Moves at most this many keys of a slot. Returns whether there were any.
    pub(crate) fn move_keys(&self, slot: u16, from: usize, to: usize, count: usize) -> bool {
        let keys: Vec<Vec<u8>> =
            self.nodes[from].ask(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), &count.to_string()]);
        if keys.is_empty() {
            return false;
        }
        let mut migrate = redis::cmd("MIGRATE");
        migrate
            .arg("127.0.0.1")
            .arg(self.nodes[to].port())
            .arg("")
            .arg(0)
            .arg(60_000);
        migrate.arg("KEYS").arg(&keys);
        migrate.exec(&mut self.nodes[from].connection()).unwrap();
        true
    }

    /// Ends the move of a slot, whose keys have all been moved.
    pub(crate) fn end_move(&self, slot: u16, from: usize, to: usize) {
        let (slot, id) = (slot.to_string(), self.id(to));
        let others = (0..self.nodes.len()).filter(|node| *node != to && *node != from);
        for node in [to, from].into_iter().chain(others) {
            self.nodes[node].ask::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
        }
        self.agree();
    }

    /// Moves a slot and its keys.
    pub(crate) fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to);
        while self.move_keys(slot, from, to, 1) {}
        self.end_move(slot, from, to);
    }

    /// Waits until a replica has all that its master has done.
    pub(crate) fn await_replica(&self, master: usize, replica: usize) {
        let offset = |node: usize| {
            let info: String = self.nodes[node].ask(&["INFO", "replication"]);
            let offset = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
            offset.unwrap().parse::<u64>().unwrap()
        };
        let done = offset(master);
        wait_until(|| offset(replica) >= done);
    }

    /// Kills a node whose replica then takes its place, and waits until the other nodes know.
    pub(crate) fn fail_over(&mut self, dead: usize, replica: usize) {
        self.nodes[dead].kill();
        self.take_over(dead, replica);
    }

    /// Lets a replica take its master's place, which is dead or hangs, and waits until the other
    /// nodes know.
    pub(crate) fn take_over(&self, dead: usize, replica: usize) {
        let id = self.id(replica);
        self.nodes[replica].ask::<()>(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
        let line = |line: &str| line.starts_with(&id) && line.contains("master") && line.contains('-');
        wait_until(|| {
            let others = self.nodes.iter().enumerate().filter(|(i, _)| *i != dead);
            let mut nodes = others.map(|(_, node)| node.ask::<String>(&["CLUSTER", "NODES"]));
            nodes.all(|nodes| nodes.lines().any(line))
        });
    }
}

/// A node's view of the cluster: the id, role, epoch and slots of each node. Without the marks of
/// slots that move.
fn view(node: &Redis) -> Vec<String> {
    let nodes: String = node.ask(&["CLUSTER", "NODES"]);
    let mut view = Vec::new();
    for line in nodes.lines() {
        // id, address, flags, master, ping, pong, epoch, link, slots
        let fields: Vec<&str> = line.split(' ').collect();
        let flags = fields[2].trim_start_matches("myself,");
        let slots = fields[8..].iter().filter(|slots| !slots.starts_with('['));
        let slots: Vec<&str> = slots.copied().collect();
        view.push(format!("{} {flags} {} {}", fields[0], fields[6], slots.join(" ")));
    }
    view.sort();
    view
}

/// A server that may be a cluster's, and that has not met others.
fn node(server: Server) -> Option<Redis> {
    let arguments = [
        "--cluster-enabled yes",
        "--cluster-require-full-coverage no",
        "--repl-diskless-sync-delay 0",
    ];
    let arguments = arguments.iter().flat_map(|argument| argument.split(' '));
    arguments.fold(server, Server::argument).start()
}
