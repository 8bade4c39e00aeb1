// SPDX-License-Identifier: Apache-2.0
//! A TCP receiver or sender on smoltcp. docs/stacks.md says what it is told and what it has to say.
//!
//! Between two events the program sleeps in poll(2) until a frame comes, or smoltcp's next timer is due. It takes all
//! data at once. The buffers are the program's choice, for smoltcp has none of its own.

use std::error::Error;
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};
use std::process::exit;

use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Medium, TunTapInterface};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address};

const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
const SEND_BUFFER_BYTES: usize = 16 << 20; // of a sender; a path of 400 Mbit/s, 100 ms and its buffer hold 10 MB
const SMALL_BUFFER_BYTES: usize = 64 << 10; // of what a flow does not use
const UNSUPPORTED: i32 = 127;

fn told(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("{name} is not set"))
}

/// Until a frame comes, the standard input has something to read or ends, or `delay` is over. Whether it is the input.
fn wait(device: RawFd, delay: Option<Duration>) -> std::io::Result<bool> {
    let wanted = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut events = [wanted(device), wanted(libc::STDIN_FILENO)];
    let micros = |time: Duration| libc::timespec {
        tv_sec: time.secs() as libc::time_t,
        tv_nsec: time.micros() as libc::c_long * 1000,
    };
    let limit = delay.map(micros);
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both arrays live until the call returns.
    if unsafe { libc::ppoll(events.as_mut_ptr(), 2, limit, std::ptr::null()) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(events[1].revents != 0)
}

fn interface(device: &mut TunTapInterface) -> Result<Interface, Box<dyn Error>> {
    let hardware: EthernetAddress = told("STACK_MAC")?
        .parse()
        .map_err(|()| "STACK_MAC is no address")?;
    let mut config = Config::new(hardware.into());
    config.random_seed = u64::from(told("STACK_PORT")?.parse::<u16>()?);
    let mut made = Interface::new(config, device, Instant::now());
    let address: Ipv4Address = told("STACK_ADDRESS")?.parse()?;
    let own = IpCidr::new(address.into(), told("STACK_PREFIX")?.parse()?);
    made.update_ip_addrs(|addresses| addresses.push(own).expect("there is room for one address"));
    let gateway: Ipv4Address = told("STACK_GATEWAY")?.parse()?;
    made.routes_mut().add_default_ipv4_route(gateway)?;
    Ok(made)
}

fn receive() -> Result<(), Box<dyn Error>> {
    let mut device = TunTapInterface::new(&told("STACK_INTERFACE")?, Medium::Ethernet)?;
    let mut interface = interface(&mut device)?;
    let mut socket = Socket::new(
        SocketBuffer::new(vec![0; RECEIVE_BUFFER_BYTES]),
        SocketBuffer::new(vec![0; SMALL_BUFFER_BYTES]),
    );
    socket.listen(told("STACK_PORT")?.parse::<u16>()?)?;
    let mut sockets = SocketSet::new(vec![]);
    let handle = sockets.add(socket);
    let (mut connected, mut ended, mut received) = (false, false, 0usize);
    let expected = told("STACK_BYTES")?.parse::<usize>()?;
    println!("ready");
    loop {
        interface.poll(Instant::now(), &mut device, &mut sockets);
        let socket = sockets.get_mut::<Socket>(handle);
        if !connected && socket.may_recv() {
            println!("connected");
            connected = true;
        }
        let before = received;
        while socket.can_recv() {
            received += socket.recv(|data| (data.len(), data.len()))?;
        }
        if before < expected && received >= expected {
            println!("all");
        }
        if connected && !ended && !socket.may_recv() {
            if socket.state() == State::Closed {
                return Err("the connection was reset".into());
            }
            println!("bytes {received}");
            socket.close();
            ended = true;
            continue; // what it has to send now does not wait for a frame
        }
        let delay = interface.poll_delay(Instant::now(), &sockets);
        if wait(device.as_raw_fd(), delay)? && std::io::stdin().read(&mut [0; 16])? == 0 {
            if !ended {
                println!("bytes {received}");
            }
            return Ok(());
        }
    }
}

fn congestion_control(name: &str) -> CongestionControl {
    match name {
        "none" => CongestionControl::None,
        "reno" => CongestionControl::Reno,
        "cubic" => CongestionControl::Cubic,
        _ => {
            println!("unsupported there is no congestion control {name}");
            exit(UNSUPPORTED);
        }
    }
}

/// What the standard input has said.
#[derive(Default)]
struct Heard {
    start: bool,
    stop: bool,
    end: bool,
}

impl Heard {
    fn hear(&mut self) -> std::io::Result<()> {
        let mut words = [0; 64];
        let length = std::io::stdin().read(&mut words)?;
        let words = String::from_utf8_lossy(&words[..length]);
        self.start |= words.contains("start");
        self.stop |= words.contains("stop");
        self.end = length == 0;
        Ok(())
    }
}

fn send() -> Result<(), Box<dyn Error>> {
    let mut device = TunTapInterface::new(&told("STACK_INTERFACE")?, Medium::Ethernet)?;
    let mut interface = interface(&mut device)?;
    let mut socket = Socket::new(
        SocketBuffer::new(vec![0; SMALL_BUFFER_BYTES]),
        SocketBuffer::new(vec![0; SEND_BUFFER_BYTES]),
    );
    socket.set_congestion_control(congestion_control(&told("STACK_ALGORITHM")?));
    let own_port = told("STACK_PORT")?.parse::<u16>()?;
    let peer: Ipv4Address = told("STACK_PEER")?.parse()?;
    let peer_port = told("STACK_PEER_PORT")?.parse::<u16>()?;
    let wanted = match told("STACK_BYTES")?.parse::<usize>()? {
        0 => usize::MAX,
        size => size,
    };
    let mut sockets = SocketSet::new(vec![]);
    let handle = sockets.add(socket);
    let (mut opened, mut connected, mut ended, mut written) = (false, false, false, 0usize);
    let mut heard = Heard::default();
    println!("ready");
    loop {
        interface.poll(Instant::now(), &mut device, &mut sockets);
        let socket = sockets.get_mut::<Socket>(handle);
        if heard.start && !opened {
            socket.connect(interface.context(), (peer, peer_port), own_port)?;
            opened = true;
            continue; // its SYN does not wait for a frame
        }
        if opened && !ended && socket.state() == State::Closed {
            return Err("the connection was reset".into());
        }
        if !connected && socket.may_send() {
            println!("connected");
            connected = true;
        }
        let before = written;
        while connected && !ended && !heard.stop && written < wanted && socket.can_send() {
            written += socket.send(|room| {
                let size = room.len().min(wanted - written);
                room[..size].fill(0);
                (size, size)
            })?;
        }
        if connected && !ended && (heard.stop || written == wanted) {
            socket.close();
            println!("bytes {written}");
            ended = true;
            continue;
        }
        if written > before {
            continue; // what it has to send now does not wait for a frame
        }
        let delay = interface.poll_delay(Instant::now(), &sockets);
        if wait(device.as_raw_fd(), delay)? {
            heard.hear()?;
            if heard.end {
                if !ended {
                    println!("bytes {written}");
                }
                return Ok(());
            }
        }
    }
}

fn main() {
    let done = match told("STACK_ROLE").as_deref() {
        Ok("receive") => receive(),
        Ok("send") => send(),
        other => {
            println!("unsupported the role {other:?}");
            exit(UNSUPPORTED);
        }
    };
    if let Err(error) = done {
        eprintln!("{error}");
        exit(1);
    }
}
