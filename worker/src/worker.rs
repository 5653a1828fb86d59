use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use hipr_io::{Address, Handler, Listener, Mailbox, Stream};
use tracing::{debug, info};

use crate::cache::{Cache, CacheStats};
use crate::config::{Config, DispatchOn, Io};
use crate::dispatch::{Beside, Dispatch};
use crate::dispatch_thread::{DispatchThread, Inline, Wake};
use crate::rlimit::raise_open_files;
use crate::stats::Stats;

/// A worker that has opened its port, socket or connection, and does not serve yet.
#[derive(Debug)]
pub struct Worker {
    config: Config,
    local_addr: Address,
    event_loop: Loop,
    cache: Option<Cache>,
    mailbox: Arc<Mailbox>,
    stats: Stats,
}

#[derive(Debug)]
enum Loop {
    Mio(Box<hipr_io_mio::Loop>),
    Uring(Box<hipr_io_uring::Loop>),
}

/// The origin of the worker's connections.
enum Source {
    /// All clients that connect.
    Port(Listener),
    /// One client.
    Connection(Stream),
}

impl Loop {
    fn new(io: Io, source: Source, limits: hipr_io::Config, stats: Arc<hipr_io::Stats>) -> io::Result<Self> {
        match (io, source) {
            (Io::Mio, Source::Port(listener)) => {
                hipr_io_mio::serve(listener, limits, stats).map(Box::new).map(Self::Mio)
            }
            (Io::Mio, Source::Connection(stream)) => {
                hipr_io_mio::serve_connection(stream, limits, stats).map(Box::new).map(Self::Mio)
            }
            (Io::Uring, Source::Port(listener)) => {
                hipr_io_uring::serve(listener, limits, stats).map(Box::new).map(Self::Uring)
            }
            (Io::Uring, Source::Connection(stream)) => {
                hipr_io_uring::serve_connection(stream, limits, stats).map(Box::new).map(Self::Uring)
            }
            (Io::Auto, source) => {
                let copy = match &source {
                    Source::Port(listener) => Source::Port(listener.try_clone()?),
                    Source::Connection(stream) => Source::Connection(stream.try_clone()?),
                };
                Self::new(Io::Uring, copy, limits.clone(), stats.clone()).or_else(|why| {
                    info!(%why, "using mio");
                    Self::new(Io::Mio, source, limits, stats)
                })
            }
        }
    }

    /// Returns the name of the event loop.
    fn name(&self) -> &'static str {
        match self {
            Self::Mio(_) => "mio",
            Self::Uring(_) => "uring",
        }
    }

    fn mailbox(&self) -> Arc<Mailbox> {
        match self {
            Self::Mio(event_loop) => event_loop.mailbox(),
            Self::Uring(event_loop) => event_loop.mailbox(),
        }
    }

    fn run(self, handler: impl Handler) -> io::Result<()> {
        match self {
            Self::Mio(event_loop) => event_loop.run(handler),
            Self::Uring(event_loop) => event_loop.run(handler),
        }
    }
}

impl Worker {
    /// Creates a worker that listens on [`Config::listen`].
    ///
    /// # Errors
    /// The address cannot be read, is in use, or may not be used; other machines can reach it and clients need no key; the event loop or
    /// the folder of the cache cannot be opened.
    pub fn bind(config: Config) -> io::Result<Self> {
        match raise_open_files() {
            Ok(limit) => debug!(?limit, "open files"),
            Err(why) => debug!(%why, "cannot raise the limit of open files"),
        }
        let listener = Listener::bind(&config.listen)?;
        listener.check_access(config.limits.identity.is_some(), config.insecure_no_auth)?;
        let local_addr = listener.address()?;
        Self::new(config, local_addr, Source::Port(listener))
    }

    /// Creates a worker for one accepted connection, which ends with it; [`Config::listen`] is ignored.
    ///
    /// # Errors
    /// The peer has gone already ([`io::ErrorKind::NotConnected`]); the event loop cannot be had.
    pub fn for_connection(config: Config, stream: impl Into<Stream>) -> io::Result<Self> {
        let stream = stream.into();
        let local_addr = stream.local_address()?;
        Self::new(config, local_addr, Source::Connection(stream))
    }

    fn new(mut config: Config, local_addr: Address, source: Source) -> io::Result<Self> {
        config.session.unsent_max_bytes = config.limits.unsent_max_bytes;
        let stats = Stats::new();
        let event_loop = Loop::new(config.io, source, config.limits.clone(), stats.io_counters())?;
        let mailbox = event_loop.mailbox();
        let cache = config.cache.as_ref().map(|cache| Cache::open(cache, stats.cache_counters())).transpose();
        let cache =
            cache.map_err(|why| io::Error::new(why.kind(), format!("cannot open the cache: {why}")))?;
        Ok(Self { config, local_addr, event_loop, cache, mailbox, stats })
    }

    /// Returns the address it listens on.
    pub fn local_addr(&self) -> Address {
        self.local_addr.clone()
    }

    /// Returns the worker's counters.
    pub fn stats(&self) -> Stats {
        self.stats.clone()
    }

    /// Returns a handle that stops it from any thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.mailbox.clone())
    }

    /// Returns what hands the worker further connections.
    pub fn door(&self) -> Door {
        Door(self.mailbox.clone())
    }

    /// Serves on the calling thread, until a [`Stopper`] is used, the system reports an error or, for one connection, its
    /// end.
    ///
    /// # Errors
    /// Those of the event loop. A failing connection or request is none.
    pub fn run(self) -> io::Result<()> {
        let Self { config, local_addr, event_loop, cache, mailbox, stats } = self;
        let dispatch_on = config.dispatch.decided_for(&*config.device);
        let has_cache = cache.is_some();
        let (audit, budget) = (config.limits.audit.clone(), config.limits.budget.clone());
        let beside = Beside { cache, audit, budget, peers: config.peers };
        let (device, io) = (config.device.name(), event_loop.name());
        info!(%local_addr, device, io, dispatch = %dispatch_on, "serving");
        let make = {
            let mailbox = mailbox.clone();
            let stats = stats.clone();
            move |wake: Wake| Dispatch::with(config.device, config.session, beside, mailbox, wake, &stats)
        };
        let result = if dispatch_on == DispatchOn::Thread {
            let dispatch = DispatchThread::spawn(mailbox, make)?;
            let result = event_loop.run(dispatch.handler());
            dispatch.end().and(result)
        } else {
            event_loop.run(Inline::new(mailbox, make))
        };
        if has_cache {
            let CacheStats { saved_bytes, kept_bytes, evicted, refused, loaded, damaged, .. } = stats.cache();
            info!(saved_bytes, kept_bytes, evicted, refused, loaded, damaged, "cache of uploads");
        }
        result
    }

    /// Serves on a thread of its own.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn spawn(self) -> io::Result<Handle> {
        let (local_addr, mailbox, stats) = (self.local_addr.clone(), self.mailbox.clone(), self.stats());
        let thread = thread::Builder::new().name("hipr-io".into()).spawn(move || self.run())?;
        Ok(Handle { local_addr, mailbox, stats, thread: Some(thread) })
    }
}

/// Stops a worker, from any thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Mailbox>);

impl Stopper {
    /// Stops the worker: its connections are closed and its sessions released. Returns at once.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// Hands a worker connections that were accepted elsewhere, from any thread.
#[derive(Clone, Debug)]
pub struct Door(Arc<Mailbox>);

impl Door {
    /// Hands over a connection, which may only go on with a session of the worker.
    pub fn hand(&self, stream: impl Into<Stream>) {
        self.0.hand(stream.into());
    }
}

/// A running worker. Dropping it stops the worker and waits for its end.
#[derive(Debug)]
pub struct Handle {
    local_addr: Address,
    mailbox: Arc<Mailbox>,
    stats: Stats,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Handle {
    /// Returns the address it listens on.
    pub fn local_addr(&self) -> Address {
        self.local_addr.clone()
    }

    /// Returns the worker's counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Stops the worker: its connections are closed and its sessions released. Returns at once; see [`Handle::join`].
    pub fn stop(&self) {
        self.mailbox.stop();
    }

    /// Waits for the end of the worker.
    ///
    /// # Errors
    /// What [`Worker::run`] ended with.
    pub fn join(mut self) -> io::Result<()> {
        self.join_thread()
    }

    fn join_thread(&mut self) -> io::Result<()> {
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the worker's thread panicked")),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
        if let Err(why) = self.join_thread() {
            tracing::error!(%why, "worker failed");
        }
    }
}
