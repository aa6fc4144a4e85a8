//! Resources of gdnsd, and pools of Zonda that say the same, in every combination of states.

use super::beside::Configurations;

/// How the answers of a name are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Both always answer with the same set of records.
    Same,
    /// Both draw their answers, from the same distribution.
    Drawn,
    /// gdnsd answers with more: see [`Builder::half`].
    Fewer,
}

/// A name that both servers answer for.
#[derive(Clone, Debug)]
pub struct SteeredName {
    pub name: String,
    pub rule: Rule,
}

/// An address that both servers have as a member.
pub struct Member {
    pub address: String,
    pub is_down: bool,
}

impl Member {
    /// The member with a number below 100, in a combination of states of a plugin's resources. The
    /// last octet of those that are down has three digits, by which commands about pools find them.
    pub fn v4(plugin: u8, states: usize, number: usize) -> Self {
        let is_down = states >> number & 1 == 1;
        let last = number + if is_down { 101 } else { 1 };
        Self { address: format!("10.{plugin}.{states}.{last}"), is_down }
    }

    /// The member of IPv6 with a number below 16; the last group of those that are down has two
    /// digits.
    fn v6(plugin: u8, states: usize, number: usize) -> Self {
        let is_down = states >> number & 1 == 1;
        let last = number + if is_down { 0xd1 } else { 1 };
        Self { address: format!("fd00::{plugin:x}:{states:x}:{last:x}"), is_down }
    }
}

/// Resources of gdnsd, pools of Zonda, and the names that they answer for.
#[derive(Default)]
pub struct Builder {
    pub configurations: Configurations,
    pub names: Vec<SteeredName>,
}

/// Members that are down, as commands about pools name them.
pub const DOWN: [&str; 3] = ["*/10.*.*.1??", "*/fd00::*:d?", "*/down*"];

impl Builder {
    /// All plugins that pools can express, in every combination of states.
    pub fn all() -> Self {
        let mut builder = Self::default();
        (0..16).for_each(|states| builder.multifo(states));
        (0..8).for_each(|states| builder.weighted(states));
        (0..4).for_each(|states| builder.weighted_names(states));
        (0..4).for_each(|states| builder.simplefo(states));
        (0..64).for_each(|states| builder.metafo(states));
        (0..32).for_each(|states| builder.half(states));
        builder.static_names();
        builder
    }

    /// Notes the state of members of gdnsd's.
    fn note_states(&mut self, members: &[Member]) {
        for member in members.iter().filter(|member| member.is_down) {
            self.configurations.states.push_str(&format!("{} => DOWN\n", member.address));
        }
    }

    /// Has both servers answer for a name.
    fn name(&mut self, name: &str, ttls: (u32, u32), resource: &str, rule: Rule) {
        self.configurations.steer(name, ttls, resource);
        self.names.push(SteeredName { name: name.to_owned(), rule });
    }

    /// All members that are up answer: four of IPv4 and two of IPv6.
    fn multifo(&mut self, states: usize) {
        let name = format!("multifo{states}");
        let v4: Vec<Member> = (0..4).map(|number| Member::v4(1, states, number)).collect();
        let v6: Vec<Member> = (0..2).map(|number| Member::v6(1, states, number)).collect();
        let (of_v4, of_v6) = (labelled(&v4), labelled(&v6));
        self.configurations.resource(
            "multifo",
            &format!(
                "{name} => {{ service_types => told, up_thresh => 0.01,\n      \
                 addrs_v4 => {{ {of_v4} }}, addrs_v6 => {{ {of_v6} }} }}"
            ),
        );
        self.note_states(&v4);
        self.note_states(&v6);
        let ttls = (30 + states as u32, 5);
        let members: Vec<String> = v4.iter().chain(&v6).map(|it| member(it, "")).collect();
        self.configurations.pool(&name, ttls, "answers = \"all\"", &members);
        self.name(&name, ttls, &format!("DYNA multifo!{name}"), Rule::Same);
    }

    /// One member is drawn by weight: of three of IPv4, and of two of IPv6.
    fn weighted(&mut self, states: usize) {
        let name = format!("weighted{states}");
        let v4: Vec<Member> = (0..3).map(|number| Member::v4(2, states, number)).collect();
        let v6: Vec<Member> = (0..2).map(|number| Member::v6(2, states, number)).collect();
        let (of_v4, of_v6) = (weighted(&v4, &[1, 3, 6]), weighted(&v6, &[2, 5]));
        self.configurations.resource(
            "weighted",
            &format!(
                "{name} => {{ service_types => told, up_thresh => 0.01,\n      \
                 addrs_v4 => {{ {of_v4} }}, addrs_v6 => {{ {of_v6} }} }}"
            ),
        );
        self.note_states(&v4);
        self.note_states(&v6);
        let weights = [1, 3, 6, 2, 5];
        let both = v4.iter().chain(&v6).zip(weights);
        let members: Vec<String> =
            both.map(|(it, weight)| member(it, &format!("weight = {weight}"))).collect();
        self.configurations.pool(&name, (60, 5), "choose = [\"weighted\"]", &members);
        self.name(&name, (60, 5), &format!("DYNA weighted!{name}"), Rule::Drawn);
    }

    /// One name is drawn by weight, to which the steered name is an alias.
    fn weighted_names(&mut self, states: usize) {
        let name = format!("alias{states}");
        let target = |number: usize| {
            let is_down = states >> number & 1 == 1;
            let state = if is_down { "down" } else { "up" };
            Member { address: format!("{state}{number}.alias{states}.elsewhere."), is_down }
        };
        let targets = [0, 1].map(target);
        let of_names = weighted(&targets, &[1, 2]);
        self.configurations.resource(
            "weighted",
            &format!("{name} => {{ service_types => told, up_thresh => 0.01, {of_names} }}"),
        );
        self.note_states(&targets);
        let data = |(it, weight): (&Member, u32)| {
            format!("{{ data = \"{}\", weight = {weight} }}", it.address)
        };
        let members: Vec<String> = targets.iter().zip([1, 2]).map(data).collect();
        self.configurations.pool(&name, (60, 5), "choose = [\"weighted\"]", &members);
        self.name(&name, (60, 5), &format!("DYNC weighted!{name}"), Rule::Drawn);
    }

    /// The first member answers, and the second one while that is down.
    fn simplefo(&mut self, states: usize) {
        let name = format!("simplefo{states}");
        let v4 = [0, 1].map(|number| Member::v4(3, states, number));
        let v6 = [0, 1].map(|number| Member::v6(3, states, number));
        let pair = |members: &[Member; 2]| {
            format!("{{ primary => {}, secondary => {} }}", members[0].address, members[1].address)
        };
        self.configurations.resource(
            "simplefo",
            &format!(
                "{name} => {{ service_types => told, addrs_v4 => {}, addrs_v6 => {} }}",
                pair(&v4),
                pair(&v6)
            ),
        );
        self.note_states(&v4);
        self.note_states(&v6);
        let ranked = [&v4, &v6].into_iter().flat_map(|pair| pair.iter().zip([1, 2]));
        let members: Vec<String> =
            ranked.map(|(it, rank)| member(it, &format!("priority = {rank}"))).collect();
        self.configurations.pool(&name, (60, 5), "choose = [\"failover\"]", &members);
        self.name(&name, (60, 5), &format!("DYNA simplefo!{name}"), Rule::Same);
    }

    /// The first of three data centres with a member that is up answers: one with all of its
    /// members, one with a member by weight, one with the first that is up.
    fn metafo(&mut self, states: usize) {
        let name = format!("metafo{states}");
        let centre = |first| [first, first + 1].map(|number| Member::v4(4, states, number));
        let [a, b, c] = [0, 2, 4].map(centre);
        let configurations = &mut self.configurations;
        let of_a = labelled(&a);
        let text = format!("{name}a => {{ service_types => told, up_thresh => 0.01, {of_a} }}");
        configurations.resource("multifo", &text);
        let of_b = weighted(&b, &[1, 3]);
        let text = format!("{name}b => {{ service_types => told, up_thresh => 0.01, {of_b} }}");
        configurations.resource("weighted", &text);
        let (primary, secondary) = (&c[0].address, &c[1].address);
        let text = format!(
            "{name}c => {{ service_types => told, primary => {primary}, secondary => {secondary} }}"
        );
        configurations.resource("simplefo", &text);
        let text = format!(
            "{name} => {{ datacenters => [ a, b, c ], dcmap => {{ a => %multifo!{name}a, \
             b => %weighted!{name}b, c => %simplefo!{name}c }} }}"
        );
        configurations.resource("metafo", &text);
        let ttls = (60, 5);
        let all: Vec<String> = a.iter().map(|it| member(it, "")).collect();
        configurations.pool(&format!("{name}a"), ttls, "answers = \"all\"", &all);
        let drawn = b.iter().zip(["weight = 1", "weight = 3"]).map(|(it, key)| member(it, key));
        let drawn: Vec<String> = drawn.collect();
        configurations.pool(&format!("{name}b"), ttls, "choose = [\"weighted\"]", &drawn);
        let ranked =
            c.iter().zip(["priority = 1", "priority = 2"]).map(|(it, key)| member(it, key));
        let ranked: Vec<String> = ranked.collect();
        configurations.pool(&format!("{name}c"), ttls, "choose = [\"failover\"]", &ranked);
        let centres = ["a", "b", "c"]
            .iter()
            .zip(1..)
            .map(|(centre, rank)| format!("{{ pool = \"{name}{centre}\", priority = {rank} }}"));
        let centres: Vec<String> = centres.collect();
        configurations.pool(&name, ttls, "choose = [\"failover\"]", &centres);
        [a, b, c].iter().for_each(|members| self.note_states(members));
        self.name(&name, ttls, &format!("DYNA metafo!{name}"), Rule::Drawn);
    }

    /// A data centre answers as long as two of its four members are up, and else another one, of
    /// one member. If that is down, too, gdnsd answers with all four members of the first, and
    /// Zonda with those of the four that are up, as far as any is: members that are known to be
    /// down help no client.
    fn half(&mut self, states: usize) {
        let name = format!("half{states}");
        let a: Vec<Member> = (0..4).map(|number| Member::v4(5, states, number)).collect();
        let b = Member::v4(5, states, 4);
        let of_a = labelled(&a);
        let text = format!(
            "{name} => {{ datacenters => [ a, b ], service_types => told, dcmap => {{ \
             a => {{ up_thresh => 0.5, {of_a} }}, b => {{ {} }} }} }}",
            labelled(std::slice::from_ref(&b))
        );
        self.configurations.resource("metafo", &text);
        let ttls = (60, 5);
        let keys = "answers = \"all\"\nup-min = 2";
        let members: Vec<String> = a.iter().map(|it| member(it, "")).collect();
        self.configurations.pool(&format!("{name}a"), ttls, keys, &members);
        self.configurations.pool(&format!("{name}b"), ttls, "", &[member(&b, "")]);
        let centres = ["a", "b"]
            .iter()
            .zip(1..)
            .map(|(centre, rank)| format!("{{ pool = \"{name}{centre}\", priority = {rank} }}"));
        let centres: Vec<String> = centres.collect();
        self.configurations.pool(&name, ttls, "choose = [\"failover\"]", &centres);
        let is_lacking = b.is_down && a.iter().filter(|it| !it.is_down).count() == 1;
        let rule = if is_lacking { Rule::Fewer } else { Rule::Same };
        self.note_states(&a);
        self.note_states(&[b]);
        self.name(&name, ttls, &format!("DYNA metafo!{name}"), rule);
    }

    /// A wildcard that is steered, and other data at a steered name.
    fn static_names(&mut self) {
        let configurations = &mut self.configurations;
        configurations.dynamic.push_str("*.wild 60/5 DYNA simplefo!simplefo1\n");
        configurations.steer.push_str("\"*.wild A,AAAA\" = \"simplefo1\"\n");
        configurations.fixed.push_str("multifo0 TXT \"beside the pool\"\nmultifo0 MX 1 other\n");
        for name in ["any.wild", "below.any.wild"] {
            self.names.push(SteeredName { name: name.to_owned(), rule: Rule::Same });
        }
    }
}

/// Members as gdnsd's plugins have them, with labels.
fn labelled(members: &[Member]) -> String {
    let entry = |(number, it): (usize, &Member)| format!("m{number} => {}", it.address);
    members.iter().enumerate().map(entry).collect::<Vec<_>>().join(", ")
}

/// Members as gdnsd's plugin `weighted` has them.
fn weighted(members: &[Member], weights: &[u32]) -> String {
    let entry = |(number, (it, weight)): (usize, (&Member, &u32))| {
        format!("m{number} => [ {}, {weight} ]", it.address)
    };
    members.iter().zip(weights).enumerate().map(entry).collect::<Vec<_>>().join(", ")
}

/// A member as Zonda's pools have it, with another key.
fn member(it: &Member, key: &str) -> String {
    let comma = if key.is_empty() { "" } else { ", " };
    format!("{{ address = \"{}\"{comma}{key} }}", it.address)
}
