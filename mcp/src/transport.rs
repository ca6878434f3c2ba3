//! Standard input and output as the SDK wants them, with an answer to what it would drop without a word.
//!
//! The SDK skips a line that is over its limit, and the client waits for ever. So each byte is watched on its way to the SDK: a line
//! over the limit gets an error that names the limit, with the request's id wherever it stands (most clients write it behind
//! the arguments). Nothing is kept here but what may be the id; the SDK keeps a line up to the limit. While an answer is not
//! read, nothing more is: answers do not pile up.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, ready};

use rmcp::RoleServer;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport as _;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest id that is found in a line over the limit, in bytes: real ones are numbers and UUIDs.
const MAX_ID_BYTES: usize = 256;

/// Reads requests and writes answers, a line each.
pub(crate) struct Transport<R: AsyncRead + Unpin, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, Watched<R>, W>,
    max_bytes: usize,
    /// Lines over the limit that nobody answered yet.
    too_long: Receiver<Option<RequestId>>,
    /// An answer to one of them on its way. Here, because whoever waits for a request may stop at any moment.
    refusal: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
}

impl<R, W> Transport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// A request may have `max_bytes` bytes, its line end included.
    pub(crate) fn new(input: R, output: W, max_bytes: usize) -> Self {
        let (tell, too_long) = channel();
        let input = Watched { input, line: Line::default(), max_bytes, too_long: tell };
        let inner = AsyncRwTransport::new_server(input, output).with_max_line_length(max_bytes);
        Self { inner, max_bytes, too_long, refusal: None }
    }

    fn refuse(&mut self, id: Option<RequestId>) {
        let text =
            format!("the request is longer than {} bytes, which is the limit; send less at once", self.max_bytes);
        let answer = TxJsonRpcMessage::<RoleServer>::error(ErrorData::invalid_request(text, None), id);
        self.refusal = Some(Box::pin(self.inner.send(answer)));
    }
}

impl<R, W> rmcp::transport::Transport<RoleServer> for Transport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(refusal) = &mut self.refusal {
                let sent = refusal.await;
                self.refusal = None;
                sent.ok()?;
            }
            let received = {
                let mut receive = pin!(self.inner.receive());
                let too_long = &mut self.too_long;
                poll_fn(move |context| {
                    let received = receive.as_mut().poll(context);
                    // A request that came with it is answered first.
                    if let Poll::Ready(request @ Some(_)) = received {
                        return Poll::Ready(Ok(request));
                    }
                    too_long.try_recv().map_or(received.map(Ok), |id| Poll::Ready(Err(id)))
                })
                .await
            };
            match received {
                Ok(request) => return request,
                Err(id) => self.refuse(id),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.inner.close().await
    }
}

/// An input whose lines over the limit are told of.
struct Watched<R> {
    input: R,
    line: Line,
    max_bytes: usize,
    too_long: Sender<Option<RequestId>>,
}

impl<R> Watched<R> {
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.bytes > self.max_bytes {
            // Nobody listens once the server is gone.
            drop(self.too_long.send(line.id));
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let known = buffer.filled().len();
        ready!(Pin::new(&mut this.input).poll_read(context, buffer))?;
        let read = &buffer.filled()[known..];
        if read.is_empty() {
            this.end_line();
        }
        for &byte in read {
            this.line.take(byte);
            if byte == b'\n' {
                this.end_line();
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// A line that passes by: its length, and the member `id` of the object that it is.
#[derive(Default)]
struct Line {
    bytes: usize,
    /// In how many objects and lists the next byte is.
    depth: usize,
    text: Text,
    /// What was read of a name or value of the outermost object, up to [`MAX_ID_BYTES`]. What is cut off is no JSON any more.
    piece: Vec<u8>,
    /// Whether that is the value of `id`.
    is_id: bool,
    id: Option<RequestId>,
}

/// Whether a byte is in a text of JSON.
#[derive(Default, Clone, Copy)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// Behind a backslash.
    Escaped,
}

impl Line {
    fn take(&mut self, byte: u8) {
        self.bytes += 1;
        let (is_outside, depth) = (matches!(self.text, Text::Outside), self.depth);
        self.text = match (self.text, byte) {
            (Text::Inside, b'\\') => Text::Escaped,
            (Text::Inside, b'"') => Text::Outside,
            (Text::Outside, b'"') | (Text::Inside | Text::Escaped, _) => Text::Inside,
            (Text::Outside, _) => Text::Outside,
        };
        if is_outside {
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        match byte {
            b':' if is_outside && depth == 1 => {
                self.is_id = self.piece.trim_ascii() == br#""id""#;
                self.piece.clear();
            }
            b',' | b'}' if is_outside && depth == 1 => {
                if self.is_id {
                    self.id = serde_json::from_slice(&self.piece).ok();
                }
                self.is_id = false;
                self.piece.clear();
            }
            _ if depth == 1 && self.piece.len() < MAX_ID_BYTES => self.piece.push(byte),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tokio::io::AsyncReadExt as _;

    /// The limit here, in bytes.
    const MAX_BYTES: usize = 120;

    /// What comes through of an input, and what is answered.
    fn pass(input: &str) -> (Vec<Value>, Vec<Value>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (output, mut client) = tokio::io::duplex(64 << 10);
            let mut transport = Transport::new(input.as_bytes(), output, MAX_BYTES);
            let mut received = Vec::new();
            while let Some(message) = transport.receive().await {
                received.push(serde_json::to_value(message).expect("JSON"));
            }
            drop(transport);
            let mut answers = String::new();
            client.read_to_string(&mut answers).await.expect("answers");
            (received, answers.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
        })
    }

    fn ping(id: u64, more: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"{more}}}"#)
    }

    #[test]
    fn a_line_over_the_limit_is_answered_with_its_id_wherever_that_is() {
        let long = "x".repeat(MAX_BYTES + 1);
        for (line, id) in [
            (format!(r#"{{"id":7,"params":"{long}"}}"#), json!(7)),
            (format!(r#"{{"method":"m","params":{{"a":["{long}"]}},"jsonrpc":"2.0","id":7}}"#), json!(7)),
            (format!(r#" {{ "params" : "{long}" , "id" : "a-7" }} "#), json!("a-7")),
            (format!(r#"{{"params":"{long}\\","id":7}}"#), json!(7)),
            // What only looks like it.
            (format!(r#"{{"params":{{"id":1,"a":"{long}"}},"id":7}}"#), json!(7)),
            (format!(r#"{{"params":"\",\"id\":1,{long}","id":7}}"#), json!(7)),
            (format!(r#"{{"a":"id","b":1,"params":"{long}"}}"#), Value::Null),
            (format!(r#"[{{"id":1,"params":"{long}"}}]"#), Value::Null),
            // What is none.
            (format!(r#"{{"params":"{long}"}}"#), Value::Null),
            (format!(r#"{{"id":{{"a":1}},"params":"{long}"}}"#), Value::Null),
            (format!(r#"{{"id":1.5,"params":"{long}"}}"#), Value::Null),
            (format!(r#"{{"id":"{}","params":1}}"#, "7".repeat(MAX_ID_BYTES)), Value::Null),
            (long.clone(), Value::Null),
            ("[".repeat(MAX_BYTES + 1), Value::Null),
        ] {
            let lines = format!("{}\n{line}\n{}\n", ping(1, ""), ping(2, ""));
            let (received, answers) = pass(&lines);
            assert_eq!(received.iter().map(|message| &message["id"]).collect::<Vec<_>>(), [1, 2], "{line}");
            assert_eq!(answers.len(), 1, "{line}: {answers:?}");
            assert_eq!(answers[0]["id"], id, "{line}");
            assert_eq!(answers[0]["error"]["code"], -32600, "{line}");
            let text = answers[0]["error"]["message"].as_str().expect("a text");
            assert!(text.contains("120 bytes"), "{text}");
            // At the end of the input as well, without an end of its line.
            assert_eq!(pass(&line), (vec![], answers), "{line}");
        }
    }

    #[test]
    fn the_limit_is_where_the_sdk_has_it_and_many_lines_over_it_are_all_answered() {
        let of_length = |length: usize| {
            let rest = ping(3, r#","a":"""#).len();
            ping(3, &format!(r#","a":"{}""#, "x".repeat(length - rest)))
        };
        let (received, answers) = pass(&format!("{}\n", of_length(MAX_BYTES - 1)));
        assert_eq!((received.len(), answers), (1, vec![]));
        let (received, answers) = pass(&format!("{}\n", of_length(MAX_BYTES)));
        assert_eq!((received, answers.len()), (vec![], 1));

        let lines: String = (0..200).map(|id| format!(r#"{{"p":"{}","id":{id}}}"#, "x".repeat(500)) + "\n").collect();
        let (_, answers) = pass(&(lines + &ping(1, "") + "\n"));
        assert!(answers.iter().map(|answer| answer["id"].clone()).eq((0..200).map(|id| json!(id))));
    }
}
