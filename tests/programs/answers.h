// What functions answer: each program of answers/ calls functions with good and bad arguments and prints a line for each call, the same on every
// machine. No call is right or wrong: the lines of two libraries are compared.
//
// Usage: PROGRAM [FIRST]      (the number of the first call that is carried out; 0 unless told)
// A call that crashes or does not return has a line as well, and ends the program with 3: started with the next number, it goes on behind it.
#pragma once
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include <hip/hip_runtime.h>
#include <unistd.h>

#pragma clang diagnostic ignored "-Wdeprecated-declarations"
#pragma clang diagnostic ignored "-Wunused-value"

namespace answers {

// Where functions put results. What a call has changed is part of its line: numbers as they are, pointers and handles only as set or null.
struct Results {
    void* pointer;
    void* second;
    hipStream_t stream;
    hipEvent_t event;
    hipGraph_t graph;
    hipGraphNode_t node;
    hipGraphExec_t exec;
    hipModule_t module;
    hipFunction_t function;
    hipMemPool_t pool;
    hipCtx_t context;
    const char* name;
    size_t size;
    size_t length;
    int number;
    int other;
    unsigned flags;
    unsigned long long id;
    float time_ms;
    char text[32];
};
inline Results results;

inline unsigned next = 0, first = 0;
inline std::string line;

// Ends the program behind a call that cannot be gone on from.
inline void end(const char* how) {
    line += how;
    line += "\n";
    (void)!write(STDOUT_FILENO, line.data(), line.size());
    _exit(3);
}
inline void crashed(int signal) { end(signal == SIGALRM ? "stands still" : "crashes"); }

inline void begin(int count, char** arguments) {
    if (count > 1) first = static_cast<unsigned>(atoi(arguments[1]));
    for (int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGALRM}) ::signal(signal, crashed);
    setvbuf(stdout, nullptr, _IOLBF, 0);
}

template <class Field> void handle(const char* name, const Field& was, const Field& is) {
    if (memcmp(&was, &is, sizeof is) != 0) line += std::string(" ") + name + (is == nullptr ? "=null" : "=set");
}
template <class Field> void value(const char* name, const Field& was, const Field& is) {
    if (memcmp(&was, &is, sizeof is) != 0) line += std::string(" ") + name + "=" + std::to_string(is);
}

// Carries one call out and prints its line; `then` looks at the results of one that succeeded, and undoes what it did.
inline void one(const std::string& call, const std::function<hipError_t()>& carry_out, const std::function<void()>& then) {
    const unsigned number = next++;
    if (number < first) return;
    memset(&results, 0xa5, sizeof results);
    Results before;
    memcpy(&before, &results, sizeof before);
    line = std::to_string(number) + "\t" + call + "\t";
    alarm(20);
    const hipError_t error = carry_out();
    line += std::to_string(error);
    // Nothing is answered behind it.
    if (error == hipErrorIllegalAddress) end(" faults");
    const hipError_t last = hipGetLastError();
    if (last != error) line += " last=" + std::to_string(last);
    const Results& after = results;
    handle("pointer", before.pointer, after.pointer);
    handle("second", before.second, after.second);
    handle("stream", before.stream, after.stream);
    handle("event", before.event, after.event);
    handle("graph", before.graph, after.graph);
    handle("node", before.node, after.node);
    handle("exec", before.exec, after.exec);
    handle("module", before.module, after.module);
    handle("function", before.function, after.function);
    handle("pool", before.pool, after.pool);
    handle("context", before.context, after.context);
    handle("name", before.name, after.name);
    value("size", before.size, after.size);
    value("length", before.length, after.length);
    value("number", before.number, after.number);
    value("other", before.other, after.other);
    value("flags", before.flags, after.flags);
    value("id", before.id, after.id);
    if (memcmp(&before.time_ms, &after.time_ms, sizeof(float)) != 0) line += " time_ms=set";
    if (memcmp(before.text, after.text, sizeof before.text) != 0) line += " text=" + std::string(after.text, strnlen(after.text, sizeof after.text));
    if (error == hipSuccess) then();
    alarm(0);
    (void)hipGetLastError();
    puts(line.c_str());
}

// What `then` adds to the line of a call.
template <class Number> void note(const char* name, Number number) { line += std::string(" ") + name + "=" + std::to_string(number); }
inline void note(const char* name, const char* text) { line += std::string(" ") + name + "=" + text; }

// What a call is followed by when its work may fail later.
inline void settle() {
    const hipError_t error = hipDeviceSynchronize();
    if (error == hipErrorIllegalAddress) end(" faults");
    if (error != hipSuccess) note("then", static_cast<int>(error));
    (void)hipGetLastError();
}
inline void nothing() {}

template <class T> struct Choice {
    const char* name;
    T value;
};
template <class T> using Choices = std::vector<Choice<T>>;
template <class T> Choices<T> any(std::initializer_list<Choice<T>> choices) { return choices; }

// How many arguments of a call may be other than their first, good, value.
inline int others_max = 2;

template <size_t At, class Call, class Values, class... T>
void choose(const std::string& text, int others, Call call, const std::function<void()>& then, const Values& values, const std::tuple<Choices<T>...>& all) {
    if constexpr (At == sizeof...(T)) {
        one(text + ")", [&] { return std::apply(call, values); }, then);
    } else {
        bool is_first = true;
        for (const auto& choice : std::get<At>(all)) {
            const int now = others + (is_first ? 0 : 1);
            is_first = false;
            if (now > others_max) break;
            choose<At + 1>(text + (At == 0 ? "" : ", ") + choice.name, now, call, then, std::tuple_cat(values, std::make_tuple(choice.value)), all);
        }
    }
}

// Calls a function with every choice of arguments of which at most `others_max` are not the first one.
template <class Call, class... T> void each(const char* function, Call call, const std::function<void()>& then, const Choices<T>&... arguments) {
    choose<0>(std::string(function) + "(", 0, call, then, std::tuple<>(), std::tuple<Choices<T>...>(arguments...));
}

} // namespace answers

#define FUNCTION(function) #function, [](auto... arguments) { return function(arguments...); }
#define OF(value) {#value, value}
// One call, which is its own text.
#define ONE(call, ...) answers::one(#call, [&] { return call; }, __VA_ARGS__)
