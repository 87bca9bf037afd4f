//! Roots, file names, skipped directories, merging, imports, project settings.

mod imports; // `import`
mod names; // file names, skipped directories, merging
mod roots; // where a project begins and ends
mod settings; // project settings
