//! A wire that can be cut: what comes to its port goes on to a server's.

#![allow(dead_code, reason = "the benches use a part")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) struct Proxy {
    port: u16,
    wire: Arc<Wire>,
}

#[derive(Default)]
struct Wire {
    /// Bytes that still pass to the server, and to the client, before the connection is cut, where it is to be.
    left: Mutex<[Option<usize>; 2]>,
    cuts: AtomicUsize,
    stalled: AtomicBool,
    ended: AtomicBool,
}

impl Proxy {
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let wire = Arc::new(Wire::default());
        let its_wire = Arc::clone(&wire);
        thread::spawn(move || {
            for client in listener.incoming() {
                if its_wire.ended.load(Ordering::Relaxed) {
                    return;
                }
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

    /// Cuts the connection that next exceeds so many bytes to the server or to the client, once.
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
