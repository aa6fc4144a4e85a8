//! Proves to a certificate authority that a domain is yours (ACME's DNS-01, rfc8555#8.4). It serves
//! the tokens that certbot has it called with, over a socket that only its user may write to:
//!
//! ```text
//! acme serve 192.0.2.53:53 example.org
//! certbot certonly --manual --preferred-challenges dns -d example.org \
//!     --manual-auth-hook 'acme set' --manual-cleanup-hook 'acme clear'
//! ```

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{env, fs, thread};
use zonda::{App, Txt};

/// Domains, and tokens that prove control of them.
type Tokens = Mutex<BTreeSet<(String, String)>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let socket = env::var("ACME_SOCKET").unwrap_or("/run/acme.sock".to_owned());
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", address, ref domains @ ..] => serve(&socket, address, domains).await,
        [what @ ("set" | "clear")] => tell(&socket, what),
        _ => Err("usage: acme serve ADDRESS DOMAIN… | acme set | acme clear".into()),
    }
}

/// Answers for the challenges of these domains.
async fn serve(socket: &str, address: &str, domains: &[&str]) -> Result<(), Box<dyn Error>> {
    let tokens: Arc<Tokens> = Arc::default();
    let mut app = App::new();
    for domain in domains {
        let (domain, tokens) = (domain.to_string(), Arc::clone(&tokens));
        let pattern = format!("_acme-challenge.{domain}/TXT");
        app = app.handle(&pattern, move || {
            let tokens = tokens.lock().unwrap_or_else(PoisonError::into_inner);
            let of_domain = tokens.iter().filter(|(of, _)| *of == domain);
            of_domain.map(|(_, token)| Txt::new(token).ttl(0)).collect::<Vec<_>>()
        });
    }
    let _ = fs::remove_file(socket); // of a former run
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
    thread::spawn(move || {
        for hook in listener.incoming().flatten() {
            if let Err(error) = hear(&hook, &tokens) {
                eprintln!("acme: {error}");
            }
        }
    });
    Ok(app.listen(address).serve().await?)
}

/// Does what a hook says: `set example.org TOKEN` or `clear example.org TOKEN`.
fn hear(mut hook: &UnixStream, tokens: &Tokens) -> io::Result<()> {
    hook.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut line = String::new();
    BufReader::new(hook.take(1000)).read_line(&mut line)?;
    let mut tokens = tokens.lock().unwrap_or_else(PoisonError::into_inner);
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["set", domain, token] => _ = tokens.insert((domain.to_lowercase(), token.to_owned())),
        ["clear", domain, token] => _ = tokens.remove(&(domain.to_lowercase(), token.to_owned())),
        _ => return hook.write_all(b"expected: set DOMAIN TOKEN, or clear DOMAIN TOKEN\n"),
    }
    hook.write_all(b"done\n")
}

/// Sends the server what certbot says, and waits until it is done.
fn tell(socket: &str, what: &str) -> Result<(), Box<dyn Error>> {
    let (domain, token) = (env::var("CERTBOT_DOMAIN")?, env::var("CERTBOT_VALIDATION")?);
    let mut server = UnixStream::connect(socket)?;
    writeln!(server, "{what} {domain} {token}")?;
    let mut said = String::new();
    server.read_to_string(&mut said)?;
    if said == "done\n" { Ok(()) } else { Err(said.into()) }
}
