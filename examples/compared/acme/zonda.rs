//! Tokens of ACME's DNS-01, which come and go on standard input.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use zonda::{App, Captures, State, Txt};

type Tokens = Arc<Mutex<BTreeSet<(String, String)>>>;

fn follow(tokens: &Tokens) {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let mut tokens = tokens.lock().expect("no panic");
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["set", account, token] => _ = tokens.insert((account.into(), token.into())),
            ["clear", account, token] => _ = tokens.remove(&(account.into(), token.into())),
            _ => {}
        }
    }
}

fn main() -> Result<(), zonda::Error> {
    let tokens = Tokens::default();
    let followed = Arc::clone(&tokens);
    std::thread::spawn(move || follow(&followed));
    let address = std::env::args().nth(1).expect("an address");
    App::new()
        .listen(address)
        .state(tokens)
        .handle(
            ":account.auth.example/TXT",
            |Captures([account]): Captures<1>, tokens: State<Tokens>| {
                let tokens = tokens.lock().expect("no panic");
                let own = tokens.iter().filter(|(of, _)| *of == account);
                own.map(|(_, token)| Txt::new(token).ttl(0)).collect::<Vec<_>>()
            },
        )
        .run()
}
