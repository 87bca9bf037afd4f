//! The program `orch`: everything it does is in [`program`].

mod program;

/// Reading a project is mostly small allocations on several threads, which takes the system's
/// allocator a quarter longer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    program::start()
}
