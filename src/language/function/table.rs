//! The notation in which functions are declared: `join(separator: string, ..lists: list(string)) -> string`.

/// Makes a table of functions: of each the description, the signature, the body, and an example with its
/// result, which is empty for a function that is refused.
macro_rules! functions {
    ($(
        $(#[doc = $line:literal])+
        $name:ident(
            $($parameter:ident: $($kind:ident)+ $(($($of:tt)+))?),* $(,)?
            $(..$variadic:ident: $($last:ident)+ $(($($of_last:tt)+))?)?
        ) -> $returns:ident $(($($returned:tt)+))? = $body:ident($how:expr),
            $call:literal => $result:literal;
    )*) => {
        &[$($crate::language::function::Function {
            name: stringify!($name),
            parameters: &[$(parameter!($parameter: $($kind)+ $(($($of)+))?)),*],
            variadic: [
                $(Some(parameter!($variadic: $($last)+ $(($($of_last)+))?)),)?
                None,
            ][0],
            returns: kind!($returns $(($($returned)+))?),
            description: concat!($($line),+).trim_ascii_start(),
            example: ($call, $result),
            body: $crate::language::function::Body::$body($how),
        }),*]
    };
}

macro_rules! parameter {
    ($name:ident: nullable $($kind:tt)+) => {
        $crate::language::function::Parameter {
            nullable: true,
            ..parameter!($name: $($kind)+)
        }
    };
    ($name:ident: $($kind:tt)+) => {
        $crate::language::function::Parameter {
            name: stringify!($name),
            kind: kind!($($kind)+),
            nullable: false,
        }
    };
}

macro_rules! kind {
    (any) => { $crate::language::function::ParameterType::Any };
    (bool) => { $crate::language::function::ParameterType::Bool };
    (number) => { $crate::language::function::ParameterType::Number };
    (string) => { $crate::language::function::ParameterType::String };
    (list($($of:tt)+)) => { $crate::language::function::ParameterType::List(&kind!($($of)+)) };
    (set($($of:tt)+)) => { $crate::language::function::ParameterType::Set(&kind!($($of)+)) };
    (map($($of:tt)+)) => { $crate::language::function::ParameterType::Map(&kind!($($of)+)) };
}
