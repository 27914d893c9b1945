//! Messages over TCP: a length of four bytes, least significant first, and postcard.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::message::{Reply, Request};

const MESSAGE_BYTES_MAX: u32 = 64 << 20;

/// Sends one message.
pub async fn send(stream: &mut TcpStream, message: &impl Serialize) -> io::Result<()> {
    let body = postcard::to_stdvec(message).map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).ok().filter(|length| *length <= MESSAGE_BYTES_MAX);
    let length = length.ok_or_else(|| io::Error::other("the message is too long"))?;
    stream.write_all(&[&length.to_le_bytes()[..], &body].concat()).await
}

/// Receives one message.
pub async fn receive<T: DeserializeOwned>(stream: &mut TcpStream) -> io::Result<T> {
    let length = stream.read_u32_le().await?;
    if length > MESSAGE_BYTES_MAX {
        return Err(io::Error::other("the message is too long"));
    }
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body).await?;
    postcard::from_bytes(&body).map_err(io::Error::other)
}

/// A connection to a node, which is made when it is needed and given up after a failure.
pub struct Connection {
    address: String,
    stream: Option<TcpStream>,
}

impl Connection {
    pub fn new(address: String) -> Self {
        Self { address, stream: None }
    }

    /// One request and its reply. Whether a request that failed was done is not known.
    pub async fn call(&mut self, request: &Request) -> io::Result<Reply> {
        // Taken out: a call that its caller gives up leaves no half of a message.
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(&self.address).await?;
                // The system may choose the port of a dead node on this machine for the caller's own end.
                if stream.local_addr()? == stream.peer_addr()? {
                    return Err(io::Error::other("connected to itself"));
                }
                stream.set_nodelay(true)?;
                stream
            }
        };
        send(&mut stream, request).await?;
        let reply = receive(&mut stream).await?;
        self.stream = Some(stream);
        Ok(reply)
    }
}
