//! A wire that can be cut: it passes the bytes from its port on to a server's. And servers that
//! lie.

#![allow(dead_code, reason = "the benches use a part")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) struct Proxy {
    port: u16,
    wire: Arc<Wire>,
}

#[derive(Default)]
struct Wire {
    /// Bytes that still pass to the server, and to the client, before the proxy cuts the
    /// connection.
    left: Mutex<[Option<usize>; 2]>,
    cuts: AtomicUsize,
    stalled: AtomicBool,
    /// The reply to the client, instead of the server's.
    lie: Mutex<Option<Lie>>,
    /// Where new connections go.
    server: AtomicU16,
    ended: AtomicBool,
}

impl Proxy {
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let wire = Arc::new(Wire::default());
        wire.server.store(server, Ordering::SeqCst);
        let its_wire = Arc::clone(&wire);
        thread::spawn(move || {
            for client in listener.incoming() {
                if its_wire.ended.load(Ordering::Relaxed) {
                    return;
                }
                let server = its_wire.server.load(Ordering::SeqCst);
                let (Ok(client), Ok(server)) = (client, TcpStream::connect((Ipv4Addr::LOCALHOST, server))) else {
                    continue;
                };
                for (from, to, direction) in [(&client, &server, 0), (&server, &client, 1)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let wire = Arc::clone(&its_wire);
                    thread::spawn(move || wire.pass(from, to, direction));
                }
            }
        });
        Self { port, wire }
    }

    pub(crate) fn client(&self) -> redis::Client {
        redis::Client::open(("127.0.0.1", self.port)).unwrap()
    }

    /// Cuts the connection that next exceeds this many bytes to the server or to the client, once.
    pub(crate) fn cut(&self, to_server: Option<usize>, to_client: Option<usize>) {
        *self.wire.left.lock().unwrap() = [to_server, to_client];
    }

    pub(crate) fn cuts(&self) -> usize {
        self.wire.cuts.load(Ordering::SeqCst)
    }

    /// Lets nothing pass, and keeps connections open.
    pub(crate) fn stall(&self, stalled: bool) {
        self.wire.stalled.store(stalled, Ordering::SeqCst);
    }

    /// Has the server's answers replaced by a lie, or not any more. A connection that was lied to
    /// is lost.
    pub(crate) fn lie(&self, lie: Option<Lie>) {
        *self.wire.lie.lock().unwrap() = lie;
    }

    /// Sends new connections to another server; those that are open stay.
    pub(crate) fn redirect(&self, server: u16) {
        self.wire.server.store(server, Ordering::SeqCst);
    }
}

/// An answer without end: how it begins, what comes again and again, and the pause before each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lie(pub(crate) &'static [u8], pub(crate) &'static [u8], pub(crate) Duration);

impl Lie {
    /// Until `enough`, or until nobody listens.
    fn tell(self, to: &mut TcpStream, enough: impl Fn() -> bool) {
        let Self(begins, goes_on, pause) = self;
        let mut result = to.write_all(begins);
        while result.is_ok() && !enough() {
            thread::sleep(pause);
            result = to.write_all(goes_on);
        }
    }
}

/// A server that answers everybody's first words by this.
pub(crate) fn liar(lie: Lie) -> redis::Client {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            thread::spawn(move || {
                let mut client = client.unwrap();
                if client.read(&mut [0; 4096]).is_ok() {
                    lie.tell(&mut client, || false);
                }
            });
        }
    });
    redis::Client::open(("127.0.0.1", port)).unwrap()
}

impl Wire {
    fn pass(&self, mut from: TcpStream, mut to: TcpStream, direction: usize) {
        let mut buffer = [0; 4096];
        while let Ok(n) = from.read(&mut buffer)
            && n > 0
        {
            while self.stalled.load(Ordering::SeqCst) && !self.ended.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            let lie = *self.lie.lock().unwrap();
            if let (1, Some(lie)) = (direction, lie) {
                lie.tell(&mut to, || self.ended.load(Ordering::Relaxed));
                break;
            }
            let mut left = self.left.lock().unwrap();
            let passing = left[direction].map_or(n, |left| left.min(n));
            let cut = left[direction].is_some_and(|left| left < n);
            if cut {
                *left = [None, None];
                self.cuts.fetch_add(1, Ordering::SeqCst);
            } else if let Some(left) = &mut left[direction] {
                *left -= n;
            }
            drop(left);
            if to.write_all(&buffer[..passing]).is_err() || cut {
                break;
            }
        }
        // Both ways: the other direction's thread sees it too.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.wire.ended.store(true, Ordering::Relaxed);
        // The listener waits for one.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}
