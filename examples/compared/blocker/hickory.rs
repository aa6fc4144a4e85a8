use hickory_server::Server;
use hickory_server::net::runtime::Time;
use hickory_server::proto::op::Message;
use hickory_server::proto::op::{Header, HeaderCounts, Metadata, ResponseCode};
use hickory_server::proto::rr::rdata::{A, SOA};
use hickory_server::proto::rr::{Name, RData, Record, RecordType};
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpListener, UdpSocket};

struct Blocker {
    upstream: SocketAddr,
}

impl Blocker {
    /// The upstream's reply.
    async fn forward(&self, request: &Request) -> Result<Message, Box<dyn std::error::Error>> {
        let socket = UdpSocket::bind("0.0.0.0:0").await?;
        socket.connect(self.upstream).await?;
        socket.send(request.as_slice()).await?;
        let mut octets = vec![0; 65_535];
        let len = tokio::time::timeout(Duration::from_secs(5), socket.recv(&mut octets)).await??;
        let reply = Message::from_vec(&octets[..len])?;
        if reply.metadata.id != request.metadata.id {
            return Err("another query's reply".into());
        }
        Ok(reply)
    }
}

fn is_blocked(name: &Name) -> bool {
    let blocked = ["ads.example.", "tracker.example."];
    blocked.iter().any(|zone| Name::from_ascii(zone).is_ok_and(|zone| zone.zone_of(name)))
}

#[async_trait::async_trait]
impl RequestHandler for Blocker {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        mut handle: R,
    ) -> ResponseInfo {
        let mut metadata = Metadata::response_from_request(&request.metadata);
        metadata.authoritative = true;
        let (mut answers, mut authorities) = (Vec::new(), Vec::new());
        match request.request_info() {
            Ok(info) if is_blocked(&info.query.name().clone().into()) => {
                let owner = info.query.original().name().clone();
                if info.query.query_type() == RecordType::A {
                    let data = RData::A(A(Ipv4Addr::UNSPECIFIED));
                    answers.push(Record::from_rdata(owner, 60, data));
                } else {
                    let data = SOA::new(owner.clone(), owner.clone(), 1, 3600, 600, 86400, 60);
                    authorities.push(Record::from_rdata(owner, 60, RData::SOA(data)));
                }
            }
            Ok(_) => match self.forward(request).await {
                Ok(reply) => {
                    metadata = reply.metadata;
                    answers = reply.answers;
                    authorities = reply.authorities;
                }
                Err(_) => metadata.response_code = ResponseCode::ServFail,
            },
            Err(_) => metadata.response_code = ResponseCode::FormErr,
        }
        let builder = MessageResponseBuilder::from_message_request(request);
        let response = builder.build(metadata, &answers, [], &authorities, []);
        handle.send_response(response).await.unwrap_or_else(|_| failure(metadata))
    }
}

/// What is logged of a reply that cannot be sent.
fn failure(mut metadata: Metadata) -> ResponseInfo {
    metadata.response_code = ResponseCode::ServFail;
    Header { metadata, counts: HeaderCounts::default() }.into()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("an address")?;
    let upstream = std::env::args().nth(2).ok_or("an upstream")?.parse()?;
    let mut server = Server::new(Blocker { upstream });
    server.register_socket(UdpSocket::bind(&address).await?);
    server.register_listener(TcpListener::bind(&address).await?, Duration::from_secs(10), 64);
    Ok(server.block_until_done().await?)
}
