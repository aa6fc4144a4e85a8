use hickory_server::Server;
use hickory_server::net::runtime::Time;
use hickory_server::proto::op::{Header, HeaderCounts, Metadata, ResponseCode};
use hickory_server::proto::rr::rdata::{A, SOA};
use hickory_server::proto::rr::{Name, RData, Record, RecordType};
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::net::{TcpListener, UdpSocket};

struct Users(HashMap<&'static str, Ipv4Addr>);

#[async_trait::async_trait]
impl RequestHandler for Users {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        mut handle: R,
    ) -> ResponseInfo {
        let mut metadata = Metadata::response_from_request(&request.metadata);
        metadata.authoritative = true;
        let zone = Name::from_ascii("users.example.").expect("a name");
        let (mut answers, mut soa) = (Vec::new(), Vec::new());
        match request.request_info() {
            Ok(info) if Name::from(info.query.name().clone()).base_name() == zone => {
                let name = info.query.name().to_string();
                let user = name.split('.').next().and_then(|user| self.0.get(user));
                match (user, info.query.query_type()) {
                    (Some(address), RecordType::A) => {
                        let owner = info.query.original().name().clone();
                        answers.push(Record::from_rdata(owner, 60, RData::A(A(*address))));
                    }
                    (user, _) => {
                        if user.is_none() {
                            metadata.response_code = ResponseCode::NXDomain;
                        }
                        let (server, mail) =
                            (zone.prepend_label("ns"), zone.prepend_label("hostmaster"));
                        let (server, mail) = (server.expect("a name"), mail.expect("a name"));
                        let data = SOA::new(server, mail, 1, 3600, 600, 86400, 60);
                        soa.push(Record::from_rdata(zone, 60, RData::SOA(data)));
                    }
                }
            }
            _ => metadata.response_code = ResponseCode::Refused,
        }
        let builder = MessageResponseBuilder::from_message_request(request);
        let response = builder.build(metadata, &answers, [], &soa, []);
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
    let mut server = Server::new(Users(HashMap::from([
        ("ann", Ipv4Addr::new(192, 0, 2, 10)),
        ("bob", Ipv4Addr::new(192, 0, 2, 11)),
    ])));
    server.register_socket(UdpSocket::bind(&address).await?);
    server.register_listener(TcpListener::bind(&address).await?, Duration::from_secs(10), 64);
    Ok(server.block_until_done().await?)
}
