//! Bugs that the invariants have to catch. `tests/mutants.rs` copies the protocol crate, the worker, the client library's stream layer, or
//! the crate of sessions that outlive their connections, applies one patch, and expects the simulator to detect it.

/// Number of seeds within which a bug of the protocol crate has to be caught.
pub const SEEDS: u64 = 1000;

/// Number of seeds within which a bug of the worker has to be caught.
pub const WORKER_SEEDS: u64 = 2000;

/// Number of seeds within which a bug of the client library has to be caught.
pub const SHIM_SEEDS: u64 = 20_000;

/// Number of seeds within which a bug of sessions that outlive their connections has to be caught.
pub const RESUME_SEEDS: u64 = 2000;

/// A bug, as a patch of the protocol crate, of the worker, of the client library or of sessions that outlive their connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mutation {
    /// Description of the bug.
    pub name: &'static str,
    /// The invariant that has to catch it.
    pub invariant: &'static str,
    /// File in the crate's `src` folder.
    pub file: &'static str,
    /// Text that occurs exactly once in the file.
    pub text: &'static str,
    /// The text that replaces it.
    pub replacement: &'static str,
}

macro_rules! mutations {
    ($(#[$doc:meta])* $table:ident;
     $($invariant:ident: $name:literal, $file:literal, $text:literal => $replacement:literal;)*) => {
        $(#[$doc])*
        pub static $table: &[Mutation] = &[$(Mutation {
            name: $name,
            invariant: stringify!($invariant),
            file: $file,
            text: $text,
            replacement: $replacement,
        }),*];
    };
}

mutations! {
    /// Bugs of the protocol crate, at least one for each invariant of the core world.
    MUTATIONS;

    nothing_panics: "more bytes are taken than there are", "partial.rs",
        "let n = usize::try_from(n).map_or(input.len(), |n| n.min(input.len()));"
        => "let n = usize::try_from(n).unwrap_or(input.len());";

    replies_leave_in_request_order: "new replies leave before old ones that wait", "responder.rs",
        "outbox.append(&mut self.out);"
        => "self.out.append(outbox); core::mem::swap(&mut self.out, outbox);";

    replies_leave_in_request_order: "a notification leaves before the rest of the reply's bytes", "responder.rs",
        "notification.put(&mut self.notifications);
        self.notifications.extend_from_slice(tail);
        if self.stream_left == 0 {"
        => "notification.put(&mut self.notifications);
        self.notifications.extend_from_slice(tail);
        {";
    notifications_arrive_in_order: "notifications behind a streamed reply are forgotten", "responder.rs",
        "if self.stream_left == 0 && !self.notifications.is_empty() {"
        => "if false {";

    exactly_one_reply_iff_asked_for: "an unanswered request is answered when it fails", "deferred.rs",
        "return Verdict::Silent;"
        => "return own.map_or(Verdict::Silent, |error| Verdict::Reply(Some(error)));";
    exactly_one_reply_iff_asked_for: "the server answers unknown operations anyway", "receiver.rs",
        "let wants_reply = !header.has(FLAG_NO_REPLY);"
        => "let wants_reply = !header.has(FLAG_NO_REPLY) || header.op.info().is_none();";
    exactly_one_reply_iff_asked_for: "NO_REPLY is forgotten where bulk bytes follow", "sender.rs",
        "if !wants_reply {"
        => "if !wants_reply && !(is_bulk && body > fixed_size) {";

    kept_errors_are_reported_once: "a kept error is overwritten by the next", "deferred.rs",
        "self.kept.get_or_insert(error);"
        => "self.kept = Some(error);";
    kept_errors_are_reported_once: "a kept error is dropped when an exempt request is answered", "deferred.rs",
        "Class::Exempt => Verdict::Reply(own),"
        => "Class::Exempt => { self.kept = None; Verdict::Reply(own) }";
    kept_errors_are_reported_once: "an exempt request reports the kept error", "deferred.rs",
        "Class::Exempt => Verdict::Reply(own),"
        => "Class::Exempt => Verdict::Reply(self.kept.take().or(own)),";
    kept_errors_are_reported_once: "a kept error is reported twice", "deferred.rs",
        "self.kept.take().or(own)"
        => "self.kept.or(own)";
    kept_errors_are_reported_once: "a request's own error wins over the kept one", "deferred.rs",
        "self.kept.take().or(own)"
        => "own.or(self.kept.take())";

    outcomes_are_the_models: "a creating request is carried out although it reports a kept error", "deferred.rs",
        "wants_reply && class == Class::Creates"
        => "wants_reply && class == Class::Creates && false";
    outcomes_are_the_models: "an unanswered creating request is not carried out", "deferred.rs",
        "self.kept.filter(|_| wants_reply && class == Class::Creates)"
        => "self.kept.filter(|_| class == Class::Creates && (wants_reply || !wants_reply))";
    outcomes_are_the_models: "the cursor of a partial write is off by one", "outbox.rs",
        "self.sent += n;"
        => "self.sent += n + usize::from(n > 0);";
    outcomes_are_the_models: "the length of a reply with bulk bytes is off by one", "responder.rs",
        "let payload = (error_code_size() + given as u64).saturating_add(inline);"
        => "let payload = (error_code_size() + given as u64).saturating_add(inline + u64::from(inline > 0));";
    outcomes_are_the_models: "a failed reply's fixed part is not zero", "responder.rs",
        "out.resize(out.len() + size, 0);"
        => "out.resize(out.len() + size, 1);";
    outcomes_are_the_models: "a failed reply has no error flag", "responder.rs",
        "FLAG_RESPONSE | FLAG_ERROR);"
        => "FLAG_RESPONSE | (FLAG_ERROR & 0));";
    outcomes_are_the_models: "no limit on payloads", "header.rs",
        "if self.payload_length > payload_max {"
        => "if self.payload_length > payload_max.saturating_mul(2) {";

    nothing_after_fatal: "a server's fatal error is not sticky", "receiver.rs",
        "State::Dead(why) => return Err(*why),"
        => "State::Dead(why) => { let why = *why; self.state = State::Header; return Err(why); }";
    nothing_after_fatal: "a client's fatal error is not sticky", "reply_receiver.rs",
        "State::Dead(why) => return Err(*why),"
        => "State::Dead(why) => { let why = *why; self.state = State::Header; return Err(why); }";

    limits_hold: "one open request too many", "receiver.rs",
        "if self.open >= self.limits.open_max {"
        => "if self.open > self.limits.open_max {";
    limits_hold: "no limit on small tails", "receiver.rs",
        "&& tail > self.small_tail_max"
        => "&& tail > self.small_tail_max.saturating_add(1 << 20)";
    limits_hold: "one waiting call too many", "reply_receiver.rs",
        "if self.calls.len() < max {"
        => "if self.calls.len() <= max {";
    limits_hold: "requests are gathered without limit", "sender.rs",
        "if queued >= COALESCE_BYTES {"
        => "if queued >= COALESCE_BYTES * 4 {";

    every_ticket_is_spent: "a ticket whose reply is streamed is not retired", "server.rs",
        "self.receiver.retire(1);"
        => "self.receiver.retire(usize::from(self.responder.stream_left() == 0));";
    every_ticket_is_spent: "one ticket too many is retired", "receiver.rs",
        "self.open = self.open.saturating_sub(completed);"
        => "self.open = self.open.saturating_sub(completed + 1);";

    inline_bytes_add_up: "every piece of a tail is called the last", "partial.rs",
        "return Piece::Data(bytes, self.data == 0);"
        => "return Piece::Data(bytes, true);";
    inline_bytes_add_up: "the last byte of a tail is called the last one early", "partial.rs",
        "return Piece::Data(bytes, self.data == 0);"
        => "return Piece::Data(bytes, self.data <= 1);";

    calls_resolve_once: "a reply is taken for that to the next call", "reply_receiver.rs",
        "return Ok(Answer::Reply(Reply { call, error, fixed, inline }));"
        => "let call = self.calls.front().copied().unwrap_or(call);
            return Ok(Answer::Reply(Reply { call, error, fixed, inline }));";

    what_is_owed_arrives: "a flush is not heard", "sender.rs",
        "self.flush = !self.out.is_empty();"
        => "self.flush &= !self.out.is_empty();";
    what_is_owed_arrives: "a request that is answered does not leave", "sender.rs",
        "self.flush |= wants_reply ||"
        => "self.flush |=";

    what_is_owed_arrives: "a reply with less than it may bring counts as short", "op/info.rs",
        "Self::AtMost(max) => Ok(have.min(max)),"
        => "Self::AtMost(max) if have < max => Err(WireError::Short { need: max, have }),
            Self::AtMost(max) => Ok(max),";

    rightful_commands_are_accepted: "unanswered requests are not counted", "responder.rs",
        "self.next += 1;"
        => "self.next += u64::from(ticket.wants_reply);";
    ends_are_told_apart: "an end inside a message is not noticed by the server", "receiver.rs",
        "_ if self.is_between_messages() => Ok(()),"
        => "_ if !self.partial.is_empty() || self.is_between_messages() => Ok(()),";
    ends_are_told_apart: "an end before all replies is not noticed by the client", "reply_receiver.rs",
        "State::Header if self.calls.is_empty() => return Ok(()),"
        => "State::Header if self.calls.len() < 2 => return Ok(()),";

    chunking_is_invisible: "the bytes of a header that came before are stale", "partial.rs",
        "if self.have == 0
            && let Some"
        => "if let Some";
    chunking_is_invisible: "what is to be skipped ends with the piece", "partial.rs",
        "if self.skip > 0 { Piece::NeedMore } else { Piece::Done }"
        => "Piece::Done";
}

mutations! {
    /// Bugs of the worker in what it does with names and with leases.
    WORKER_MUTATIONS;

    transcript_is_the_models: "a name stands for what has its place", "owned/names.rs",
        "Some(slot) if slot.number == number && slot.kind == kind => slot.handle,"
        => "Some(slot) if slot.kind == kind => slot.handle,";
    transcript_is_the_models: "a name stands for an object of any kind", "owned/names.rs",
        "Some(slot) if slot.number == number && slot.kind == kind => slot.handle,"
        => "Some(slot) if slot.number == number => slot.handle,";
    transcript_is_the_models: "a name is accepted twice", "owned/names.rs",
        "Some(slot) if slot.handle == NOTHING && slot.number < number => slot.number = number,"
        => "Some(slot) if slot.handle == NOTHING => slot.number = number,";
    transcript_is_the_models: "a name is accepted while its place has an object", "owned/names.rs",
        "Some(slot) if slot.handle == NOTHING && slot.number < number => slot.number = number,"
        => "Some(slot) if slot.number < number => *slot = Slot { number, handle: NOTHING, ..*slot },";
    transcript_is_the_models: "a name waits for a request that makes something", "owned/names.rs",
        "(Next::Announced(_), None) => Err(Unfit::OfName(HipError::INVALID_VALUE)),"
        => "(Next::Announced(name), None) => { self.next = Next::Announced(name); Ok(()) }";
    transcript_is_the_models: "what was to have a wrong name is made without one", "owned/names.rs",
        "(Next::Refused(error), Some(_)) => Err(Unfit::OfRequest(error)),"
        => "(Next::Refused(_), Some(_)) => Ok(()),";
    transcript_is_the_models: "a name that was not used is left to the next request", "owned/names.rs",
        "(Next::Unnamed | Next::Makes(..) | Next::Refused(_), _) => Ok(()),"
        => "(Next::Makes(kind, name), _) => { self.next = Next::Makes(kind, name); Ok(()) }
            (Next::Unnamed | Next::Refused(_), _) => Ok(()),";
    transcript_is_the_models: "a byte is promised twice", "call/lease.rs",
        "call.owned.lease.place(base, size_bytes)?;"
        => "";
    transcript_is_the_models: "the bytes of memory that is freed are promised to others", "session/wait.rs",
        "Wait::Free(ptr) if comes_back => context.poll_free_reserved(ptr),"
        => "Wait::Free(ptr) if comes_back => context.poll_free(ptr),";
    transcript_is_the_models: "a freed address is given out before the free", "owned.rs",
        "self.lease.free_async(ptr);"
        => "self.lease.free(ptr);";
    transcript_is_the_models: "each piece that is unpacked is written to the beginning", "session/packed.rs",
        "context.poll_write(&dst, offset, piece, stream)"
        => "context.poll_write(&dst, 0, piece, stream)";
    transcript_is_the_models: "bytes that are not worth packing are sent from the beginning again", "session/packed.rs",
        "State::Read { src, stream, offset: read }"
        => "State::Read { src, stream, offset: 0 }";
    transcript_is_the_models: "packed copies need no feature", "call/packed.rs",
        "call.check_feature(Features::PACKED)?;
    let PutPacked"
        => "let PutPacked";
    transcript_is_the_models: "variables that are asked for later have no numbers", "owned/modules.rs",
        "module.variables = variables.into();"
        => "if module.variables.is_empty() { module.variables = variables.into(); }";
    transcript_is_the_models: "copies to a variable go to its beginning", "call/copy.rs",
        "let dst = address.checked_add(r.offset).ok_or(HipError::INVALID_VALUE)?;"
        => "let dst = address;";
    transcript_is_the_models: "the variables of a module are told without the feature", "call/module.rs",
        "call.check_feature(Features::VARIABLES)?;
    call.owned.check_module(r.module)?;"
        => "call.owned.check_module(r.module)?;";
    transcript_is_the_models: "the first request for times is told, and not the last", "call/stream.rs",
        "call.owned.asked_times = Some(AskedTimes { number: r.number, pairs: pairs? });"
        => "call.owned.asked_times.get_or_insert(AskedTimes { number: r.number, pairs: pairs? });";
    transcript_is_the_models: "times are told behind any request", "session/watched.rs",
        "if wants_reply {
            self.send_printed();"
        => "if wants_reply || self.owned.asked_times.is_some() {
            self.send_printed();";
    transcript_is_the_models: "the name of an unloaded module stays", "owned/modules.rs",
        "self.names.forget(Handle::Module, module);"
        => "";
}

mutations! {
    /// Bugs of the client library, at least one for each invariant of the shim world.
    SHIM_MUTATIONS;

    work_is_done_in_order: "bytes that only this process has are written ahead of the stream's work", "stream/call.rs",
        "|| self.comes_here_later(streams, caller.port)? {"
        => "|| false && self.comes_here_later(streams, caller.port)? {";
    work_is_done_in_order: "a graph's kernel of another device comes behind nothing", "stream/graphs/devices.rs",
        "self.go_on(port, &mut calls, mem::replace(&mut now, next), next)?;"
        => "now = next;";
    waits_bring_what_work_wrote: "a query that says done without asking fetches nothing", "stream/wait.rs",
        "return self.fetch(streams, port, waited, None);"
        => "return Ok(Next::Done(Ok(())));";
    waits_end_when_work_is_over: "work counts as done whose stream had work that was", "stream/pending.rs",
        "*number <= line.done.max(line.over)"
        => "line.done > 0 || *number <= line.over";
    work_sees_what_the_program_wrote: "no event orders another stream behind what was sent", "stream/mirror/region.rs",
        "self.pushed_on.filter(|_| !self.ordered.contains(&stream))"
        => "self.pushed_on.filter(|_| false && !self.ordered.contains(&stream))";
    waits_bring_what_work_wrote: "a wait counts work as over that began during the wait", "stream/mirror/region.rs",
        "self.uses.finish(&fetching.clock);"
        => "let now = self.uses.before_all(|_| true); self.uses.finish(&now);";
    no_write_of_the_program_is_lost: "a wait for a device counts what another one writes as over", "stream/mirror/side.rs",
        "let is_own = |stream| order.device_of(stream) == device;"
        => "let is_own = |_| true;";
    waits_bring_what_work_wrote: "what came before bytes that arrived is not fetched by the next wait", "stream/call.rs",
        "streams.mirror(self.stream).over(&waited);"
        => "";
    waits_bring_what_work_wrote: "a query that says done fetches nothing", "stream/mirror/side.rs",
        "if wait.is_query() {"
        => "if wait.is_query() {
            fetching.need = Need::Nothing;";
    queries_know_what_was_told: "what the worker has not agreed to watch counts as unfinished", "stream/watches.rs",
        "watch.is_open && comes_behind(watch)"
        => "comes_behind(watch)";
    no_write_of_the_program_is_lost: "what was sent and has not arrived is fetched as a change", "stream/mirror/region.rs",
        "self.order(port, stream)?;
        Ok(stream)"
        => "Ok(stream)";
    waits_bring_what_work_wrote: "what the worker knows nothing of is fetched the next time only", "stream/mirror/side.rs",
        "if told.knows_all && told.left.is_empty() {"
        => "if told.left.is_empty() {";
    no_write_of_the_program_is_lost: "an answer is taken for newer than what was sent behind its question", "stream/mirror/region.rs",
        "self.questions.sent(host.0 + offset, bytes.len());"
        => "";
    work_sees_what_the_program_wrote: "pages that are written between the question and the comparison are forgotten", "stream/mirror/region.rs",
        "region.unseen.compared();"
        => "region.unseen.look(port, region.info.host, region.info.len, true);
            region.unseen.compared();";
    work_sees_what_the_program_wrote: "the number of the last write is asked for behind the pages", "stream/mirror/region.rs",
        "self.looked = Some(writes);"
        => "self.looked = Some(port.writes());";
    work_sees_what_the_program_wrote: "a region that is new is not asked about where nothing was written since", "stream/mirror/region.rs",
        "self.looked = None;"
        => "";
    work_sees_what_the_program_wrote: "what is not known to be written counts as not written", "stream/mirror/unseen.rs",
        "self.tracked = None;
                self.open.add(0, len);"
        => "";
    waits_bring_what_work_wrote: "a wait ends before what was told to an earlier question is there", "stream/mirror/questions.rs",
        "let answers = self.open.front_mut()?.answers.take()?;
        Some((self.open.pop_front()?, answers))"
        => "let at = self.open.iter().position(|question| question.answers.is_some())?;
        let mut question = self.open.remove(at)?;
        let answers = question.answers.take()?;
        Some((question, answers))";

    work_is_done_in_order: "a change overtakes the synchronous copy that reads what was there", "stream/call.rs",
        "self.is_read_at_once = is_blocking;"
        => "self.is_read_at_once = false;";
    work_is_done_in_order: "what the process did by itself carries no order to other streams", "stream.rs",
        "if self.pending.others_before(&self.order, stream) {"
        => "if self.pending.others_before(&self.order, stream) && stream == u64::MAX {";
    work_is_done_once: "captured work is executed as well", "stream/call.rs",
        "if self.capture(streams)? {"
        => "if self.capture(streams)? && false {";

    functions_run_once_and_in_order: "a function does not wait for the null stream's earlier work", "stream.rs",
        "if !self.order.is_blocking(stream) {"
        => "if stream != u64::MAX {";
    functions_run_once_and_in_order: "a wait for an event does not follow the function before its record", "stream/host_functions.rs",
        "after.extend(awaits.iter().chain(records).filter_map(|event| state.records.get(event)));"
        => "";

    waits_end_when_work_is_over: "a wait for an event does not wait for the function before its record", "stream/wait.rs",
        "Wait::Event(event) => functions.recording(event),"
        => "Wait::Event(_) => Vec::new(),";
    waits_end_when_work_is_over: "a kernel before an event of another stream is forgotten", "stream/call.rs",
        "let is_decided = before < State::Open && !is_kept;"
        => "let is_decided = before <= State::Open && !is_kept;";
    waits_end_when_work_is_over: "open work of the null stream is not that of what comes behind it", "stream/pending.rs",
        "*other != stream && order.is_behind(stream, *other);"
        => "*other != stream && order.includes(stream, *other);";
    waits_tell_errors: "a query that says done ends what its errors are still to be told of", "stream/wait.rs",
        "(!asked.is_query()).then_some(covered)"
        => "Some(covered)";
    work_is_done_in_order: "decided work that a wait passed over is not before what is sent later", "stream.rs",
        "_ => port.wait_in_order(wait)?,"
        => "_ => port.flush()?,";
    waits_bring_what_work_wrote: "a lazy wait passes over work that writes to memory of the program", "stream.rs",
        "&& self.mirrors.show_nothing()"
        => "";
    waits_bring_what_work_wrote: "a lazy wait passes over kernels that may write to memory that both sides map", "stream/mirror/side.rs",
        "regions.by_host.values().all(|region| !region.is_shared)
            && "
        => "";
    waits_end_when_work_is_over: "a fill of memory that both sides map counts as a fill of the device's", "stream/call.rs",
        "if self.is_mirrored || self.is_shared { Outcome::Open }"
        => "if self.is_mirrored { Outcome::Open }";
    work_sees_what_the_program_wrote: "a synchronous copy from memory that both sides map returns before it is read", "stream/call.rs",
        "if self.is_mirrored || (self.is_shared && self.is_blocking) {"
        => "if self.is_mirrored {";
    queries_do_not_say_not_ready_for_ever: "a query asks for the null stream's functions", "stream/wait.rs",
        "if !functions.included(&streams.order, stream).is_empty() {"
        => "if functions.is_busy(&streams.order, stream) {";
    no_call_waits_for_what_hip_does_not: "a wait waits for the null stream's functions", "stream/wait.rs",
        "Wait::Stream(stream) => functions.included(&streams.order, stream),"
        => "Wait::Stream(stream) => functions.behind(&streams.order, stream),";
    no_call_waits_for_what_hip_does_not: "a wait for a device waits for the functions of another one", "stream/wait.rs",
        "functions.all_of(&streams.order, device)"
        => "{ let _ = device; functions.all() }";
    no_call_waits_for_what_hip_does_not: "a fill of mirrored memory waits for functions", "stream/call.rs",
        "streams.may_fill_later(port, fill, self.stream)?"
        => "streams.is_fill_on_device(port, fill, self.stream)?";
    nothing_hangs: "no thread is started for a queue while there is another", "stream/host_functions.rs",
        "caller.threads.start(queue)?;"
        => "if state.queues.is_empty() { caller.threads.start(queue)?; }";
    nothing_hangs: "a function waits for those of all streams", "stream/host_functions.rs",
        "let mut after = state.behind(order, stream);
        let awaits"
        => "let mut after = state.last_of(|_| true);
        let awaits";
    nothing_hangs: "a stream that does not block counts as blocking once it is destroyed", "stream.rs",
        "self.graphs.forget_stream(stream);"
        => "self.order.remove(stream); self.graphs.forget_stream(stream);";

    work_is_done_once: "a worker is asked to wait for an event of another one", "stream/across.rs",
        "self.events.info(*event).is_ok_and(|info| self.is_elsewhere(info.device, stream))"
        => "{ let _ = event; false }";
    work_is_done_in_order: "a step that concerns another worker does not wait for what its stream has", "stream/call.rs",
        "Ok(Next::CallHost(HostFunction::Await(mark), Ok(())))"
        => "self.answer = Some(Ok(()));
                Ok(Next::Continue)";
    work_is_done_in_order: "a copy to another worker is read before all that this one is sent later, and not written", "stream/across.rs",
        "send_copy(self, port, &Transfer { kind, to, from, copy: *copy, stream, is_blocking: true })"
        => "send_copy(self, port, &Transfer { kind, to, from, copy: *copy, stream, is_blocking: false })";
    what_ended_is_forgotten: "another worker's stream waits for the last record of an event", "stream/kept.rs",
        "let known = step.and_then(|step| kept.events.remove(&step));"
        => "let known: Option<Event> = step.and(None);";
    work_is_done_in_order: "memory is where the worker of the current device has it", "stream/place.rs",
        "match self.mirror(stream).place(port, place.at, span, place.is_device)? {"
        => "match self.mirrors.place(port, place.at, span, place.is_device)? {";
    work_sees_what_the_program_wrote: "all that the program wrote goes to the first worker", "stream.rs",
        "self.mirrors.of(|| self.order.device_of(stream))"
        => "self.mirrors.of(|| stream as i32 & 0)";
    waits_bring_what_work_wrote: "a wait fetches what the first worker has", "stream.rs",
        "self.mirrors.of(|| match wait() {"
        => "self.mirrors.of(|| 0 * match wait() {";
    what_ended_is_forgotten: "the mark before a step is never destroyed", "stream/across.rs",
        "port.destroy_event(mark)
    }"
        => "Ok(())
    }";

    what_ended_is_forgotten: "a destroyed event is remembered", "stream/call.rs",
        "streams.events.remove(*event);"
        => "";
    what_ended_is_forgotten: "a destroyed stream is remembered", "stream/call.rs",
        "streams.order.remove(stream);"
        => "";
    nothing_panics: "a byte too many is merged", "stream/mirror/diff.rs",
        "new.get(at + same..at + same + run).unwrap_or_default(),"
        => "&new[at + same..at + same + run + 1],";
}

mutations! {
    /// Bugs of sessions that outlive their connections, at least one for each invariant of their world.
    RESUME_MUTATIONS;

    bytes_arrive_once_and_in_order: "what the other end has is sent again", "endpoint.rs",
        "self.sent = self.acked;
        self.is_cut = false;"
        => "self.sent = self.acked.saturating_sub(1); self.ring.clear(); self.is_cut = false;";
    bytes_arrive_once_and_in_order: "a connection goes on where the last one stopped", "endpoint.rs",
        "self.sent = self.acked;
        self.is_cut = false;"
        => "self.is_cut = false;";
    bytes_arrive_once_and_in_order: "half a head outlives its connection", "endpoint.rs",
        "(self.head_len, self.frame_left, self.is_last_here) = (0, 0, false);"
        => "(self.frame_left, self.is_last_here) = (0, false);";
    bytes_arrive_once_and_in_order: "half a frame outlives its connection", "endpoint.rs",
        "(self.head_len, self.frame_left, self.is_last_here) = (0, 0, false);"
        => "(self.head_len, self.is_last_here) = (0, false);";
    bytes_arrive_once_and_in_order: "what is stowed outlives its connection and comes again", "endpoint.rs",
        "self.stowed.clear();"
        => "";
    bytes_arrive_once_and_in_order: "the second piece of the ring is left out", "endpoint.rs",
        "into.extend_from_slice(second);"
        => "into.extend(second.iter().map(|_| 0));";
    bytes_arrive_once_and_in_order: "what is stowed comes behind what follows", "endpoint.rs",
        "let mut len = self.stowed.take(into);
        self.taken += len as u64;
        if self.stowed.len() > 0 {"
        => "let mut len = 0;
        if input.is_empty() {
            len = self.stowed.take(into);
            self.taken += len as u64;
        }
        if false {";
    an_end_is_learned_as_an_end: "the end is said before the last bytes", "endpoint.rs",
        "self.is_finished && !self.is_end_sent && self.sent + len as u64 == self.end();"
        => "self.is_finished && !self.is_end_sent;";
    an_end_is_learned_as_an_end: "an end is heard before the last frame's bytes", "endpoint.rs",
        "self.is_last_here |= is_last;"
        => "self.is_last_here |= is_last; self.has_end |= is_last;";
    an_honest_end_is_believed: "what was said to be taken is less than what was taken", "endpoint.rs",
        "self.told = self.has();
        self.told
    }"
        => "self.told = self.has();
        self.told + 1
    }";
    an_honest_end_is_believed: "the end is not said again over another connection", "endpoint.rs",
        "if header.len > 0 && (self.has_end || self.is_last_here) {"
        => "if self.has_end || self.is_last_here {";
    late_and_strange_claims_are_refused: "a late claim is let in", "registry.rs",
        "if claim.epoch <= session.epoch {"
        => "if false {";
    late_and_strange_claims_are_refused: "another key's claim is let in", "registry.rs",
        ".filter(|session| session.key == *key)"
        => "";
    late_and_strange_claims_are_refused: "a second session takes the name of the first", "registry.rs",
        "if self.sessions.contains_key(&name) {"
        => "if false {";
    memory_is_bounded: "a full ring takes more", "endpoint.rs",
        "let len = bytes.len().min(self.room());"
        => "let len = bytes.len();";
    an_honest_end_is_believed: "what is stowed counts as taken", "endpoint.rs",
        "self.stowed.push(piece);"
        => "self.stowed.push(piece); self.taken += piece.len() as u64;";
    links_that_hold_bring_everything: "what was taken is never said without bytes", "endpoint.rs",
        "self.has() - self.told >= every as u64"
        => "false";
    links_that_hold_bring_everything: "what the other end has is not forgotten", "endpoint.rs",
        "self.ring.drop_front(usize::try_from(offset - self.acked).unwrap_or(usize::MAX));
            self.acked = offset;"
        => "";
    links_that_hold_bring_everything: "the end is not said over a new connection", "endpoint.rs",
        "(self.head_len, self.frame_left, self.is_last_here) = (0, 0, false);
        self.is_end_sent = false;"
        => "(self.head_len, self.frame_left, self.is_last_here) = (0, 0, false);";
    acknowledgements_are_few: "everything that was taken is said at once", "endpoint.rs",
        "self.has() - self.told >= every as u64"
        => "self.has() > self.told";
    nothing_panics: "a ring gives back more than it has", "ring.rs",
        "self.0.drain(..len.min(self.0.len()));"
        => "self.0.drain(..len + 1);";
}
