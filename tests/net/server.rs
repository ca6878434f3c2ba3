//! A server that answers each request with what a test says, and remembers what it was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What a request was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Header lines with lower-case names.
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

/// An answer: status line, header lines, body. An endless one goes on until nobody listens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: &'static str,
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
    pub(crate) is_endless: bool,
}

/// A listening server. Its threads end with the test process.
pub(crate) struct Server {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Starts a server on loopback.
    pub(crate) fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = Self {
            address: listener.local_addr().expect("an address").to_string(),
            requests: Arc::new(Mutex::new(Vec::new())),
        };
        let requests = Arc::clone(&server.requests);
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let (requests, answer) = (Arc::clone(&requests), Arc::clone(&answer));
                thread::spawn(move || {
                    let Some(request) = read(&stream) else { return };
                    requests.lock().expect("no test panics with it").push(request.clone());
                    write(&stream, &answer(&request));
                });
            }
        });
        server
    }

    /// What it has been asked so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no test panics with it").clone()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut request = Request { method: words.next()?, path: words.next()?, ..Request::default() };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.push(format!("{}: {}", name.to_ascii_lowercase(), value.trim()));
    }
    let length = request.headers.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    request.body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn write(mut stream: &TcpStream, answer: &Answer) {
    let mut head = format!("HTTP/1.1 {}\r\nConnection: close\r\n", answer.status);
    for line in &answer.headers {
        head.push_str(line);
        head.push_str("\r\n");
    }
    if !answer.is_endless {
        let length = format!("Content-Length: {}\r\n", answer.body.len());
        head.push_str(&length);
    }
    head.push_str("\r\n");
    let mut sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&answer.body));
    let more = vec![b' '; 64 * 1024];
    while sent.is_ok() && answer.is_endless {
        sent = stream.write_all(&more);
    }
}
