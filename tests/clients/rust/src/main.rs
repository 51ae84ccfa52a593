//! Messages between two hosts, over the public crate `ibverbs`: SEND and Receive, what polling says of them, and the
//! errors that `QueuePair::post_send` and `post_receive` name.
//!
//! usage: messages listen PORT | messages connect PORT
//!
//! The two ends exchange their endpoints over TCP on this machine. Exit code 0: everything was as documented; 101
//! (a panic): something was not, and is named.

use std::io::{BufRead, BufReader, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use ibverbs::{ibv_qp_type, ibv_wc, ibv_wc_opcode, ibv_wc_status};
use ibverbs::{CompletionQueue, MemoryRegion, PreparedQueuePair, QueuePair, QueuePairEndpoint};

/// Requests that each queue of a queue pair holds, as it is asked for. The device may grant more.
const DEPTH: u32 = 4;
const MOST: u64 = 100_000;
/// Bytes of a message, and of the place for it.
const BYTES: usize = 5_000;
const LIMIT: Duration = Duration::from_secs(60);
const ENOMEM: i32 = 12;

/// The other program, by lines of text.
struct Peer {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Peer {
    fn new(stream: TcpStream) -> Result<Self> {
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Self { stream, reader })
    }

    fn exchange(&mut self, line: &str) -> Result<String> {
        writeln!(self.stream, "{line}")?;
        let mut answer = String::new();
        self.reader.read_line(&mut answer)?;
        Ok(answer)
    }

    fn endpoint(&mut self, prepared: &PreparedQueuePair<'_>) -> Result<QueuePairEndpoint> {
        let answer = self.exchange(&serde_json::to_string(&prepared.endpoint())?)?;
        Ok(serde_json::from_str(&answer)?)
    }

    /// Both ends are here.
    fn meet(&mut self) -> Result<()> {
        self.exchange("here").map(|answer| assert_eq!(answer, "here\n", "the other end has ended"))
    }
}

/// The next completion, which is to come within LIMIT.
fn next(cq: &CompletionQueue<'_>) -> Result<ibv_wc> {
    let start = Instant::now();
    loop {
        let mut completions = [ibv_wc::default(); 1];
        if let [completion] = cq.poll(&mut completions)? {
            return Ok(*completion);
        }
        assert!(start.elapsed() < LIMIT, "no completion within {LIMIT:?}");
    }
}

fn byte(message: u64, at: usize) -> u8 {
    (message as usize * 31 + at * 7) as u8
}

/// Posts until the queue is full, and returns how many it took. It is ENOMEM, and nothing else, that ends it.
fn fill(what: &str, mut post: impl FnMut(u64) -> Result<()>) -> u64 {
    for id in 0..MOST {
        if let Err(error) = post(id) {
            assert_eq!(error.raw_os_error(), Some(ENOMEM), "a {what} queue that is full");
            assert!(id >= u64::from(DEPTH), "the {what} queue took {id} requests, and was to hold {DEPTH}");
            return id;
        }
    }
    panic!("the {what} queue took {MOST} requests");
}

/// Receives what the other end sends: messages that fit, in order, each in the Receive posted for it, whose wr_id comes
/// back; and one that does not fit.
fn receive(qp: &mut QueuePair<'_>, cq: &CompletionQueue<'_>, memory: &mut MemoryRegion<u8>, peer: &mut Peer) -> Result<()> {
    let taken = fill("receive", |id| unsafe { qp.post_receive(memory, ..BYTES, id) });
    peer.exchange(&taken.to_string())?;
    for message in 0..taken {
        let completion = next(cq)?;
        assert!(completion.is_valid(), "message {message}: {:?}", completion.error());
        assert_eq!(completion.wr_id(), message);
        assert_eq!(completion.opcode(), ibv_wc_opcode::IBV_WC_RECV);
        assert_eq!(completion.len(), BYTES);
        // All have the same place, so the next may be on its way into it already.
        if message + 1 == taken {
            assert!((0..BYTES).all(|at| memory[at] == byte(message, at)), "bytes of message {message}");
        }
    }
    // What was taken leaves room.
    unsafe { qp.post_receive(memory, ..BYTES - 1, MOST) }?;
    peer.meet()?;
    let completion = next(cq)?;
    assert_eq!(completion.wr_id(), MOST);
    assert_eq!(completion.error().map(|(status, _)| status), Some(ibv_wc_status::IBV_WC_LOC_LEN_ERR));
    println!("{taken} messages of {BYTES} bytes received; one that was too long refused");
    Ok(())
}

/// Sends as many as the other end has Receives for, one after the other, then one that is longer than its Receive.
fn send(qp: &mut QueuePair<'_>, cq: &CompletionQueue<'_>, memory: &mut MemoryRegion<u8>, peer: &mut Peer) -> Result<()> {
    let wanted: u64 = peer.exchange("how many")?.trim().parse().expect("a number of messages");
    for message in 0..wanted {
        for at in 0..BYTES {
            memory[at] = byte(message, at);
        }
        unsafe { qp.post_send(memory, ..BYTES, message) }?;
        let completion = next(cq)?;
        assert!(completion.is_valid(), "message {message}: {:?}", completion.error());
        assert_eq!(completion.wr_id(), message);
        assert_eq!(completion.opcode(), ibv_wc_opcode::IBV_WC_SEND);
    }
    assert!(cq.poll(&mut [ibv_wc::default(); 4])?.is_empty(), "nothing is left to poll");
    peer.meet()?;
    unsafe { qp.post_send(memory, ..BYTES, MOST) }?;
    let completion = next(cq)?;
    assert_eq!(completion.wr_id(), MOST);
    assert_eq!(completion.error().map(|(status, _)| status), Some(ibv_wc_status::IBV_WC_REM_INV_REQ_ERR));
    // The queue pair has failed. What is posted to it is flushed, and fills the queue: nothing takes it out but polling.
    let taken = fill("send", |id| unsafe { qp.post_send(memory, ..1, id) });
    for id in 0..taken {
        let completion = next(cq)?;
        assert_eq!(completion.wr_id(), id, "flushed in order");
        assert_eq!(completion.error().map(|(status, _)| status), Some(ibv_wc_status::IBV_WC_WR_FLUSH_ERR));
    }
    println!("{wanted} messages of {BYTES} bytes sent; one that was too long failed, {taken} behind it flushed");
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (listens, port) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["listen", port] => (true, port),
        ["connect", port] => (false, port),
        _ => {
            eprintln!("usage: messages listen PORT | messages connect PORT");
            std::process::exit(2);
        }
    };
    let address = format!("127.0.0.1:{port}");
    let stream = if listens { TcpListener::bind(address)?.accept()?.0 } else { TcpStream::connect(address)? };
    let mut peer = Peer::new(stream)?;

    let devices = ibverbs::devices()?;
    let context = devices.iter().next().expect("a device").open()?;
    // Deep enough for all that either queue holds.
    let cq = context.create_cq(1024, 0)?;
    let pd = context.alloc_pd()?;
    let prepared = pd
        .create_qp(&cq, &cq, ibv_qp_type::IBV_QPT_RC)
        .set_gid_index(0)
        .set_max_send_wr(DEPTH)
        .set_max_recv_wr(DEPTH)
        .build()?;
    let endpoint = peer.endpoint(&prepared)?;
    let mut memory = pd.allocate::<u8>(BYTES)?;
    let mut qp = prepared.handshake(endpoint)?;
    if listens {
        receive(&mut qp, &cq, &mut memory, &mut peer)?;
    } else {
        send(&mut qp, &cq, &mut memory, &mut peer)?;
    }
    peer.meet()
}
