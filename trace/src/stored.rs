//! How the type of a field lies in a column of Arrow and in a JSON object.

use std::borrow::Cow;

use arrow::array::{
    Array, ArrayBuilder, ArrayRef, AsArray, Int64Array, Int64Builder, StringArray,
    StringDictionaryBuilder, UInt32Array, UInt32Builder, UInt64Array, UInt64Builder,
};
use arrow::datatypes::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;

use crate::schema::{Column, Kind};

/// A value that a cell of a column holds.
pub(crate) trait Cell {
    const KIND: Kind;
    type Value<'a>: Default + Serialize;
    type Json: DeserializeOwned;
    type Array: Array;
    type Builder: ArrayBuilder + Default;

    fn typed(array: &ArrayRef) -> Self::Array;
    fn get(array: &Self::Array, at: usize) -> Self::Value<'_>;
    fn put(builder: &mut Self::Builder, value: Option<&Self::Value<'_>>);
    fn of_json(json: Self::Json) -> Self::Value<'static>;
}

macro_rules! number {
    ($number:ty, $kind:ident, $arrow:ty, $array:ty, $builder:ty) => {
        impl Cell for $number {
            const KIND: Kind = Kind::$kind;
            type Value<'a> = $number;
            type Json = $number;
            type Array = $array;
            type Builder = $builder;

            fn typed(array: &ArrayRef) -> $array {
                array.as_primitive::<$arrow>().clone()
            }

            fn get(array: &$array, at: usize) -> $number {
                array.value(at)
            }

            fn put(builder: &mut $builder, value: Option<&$number>) {
                builder.append_option(value.copied());
            }

            fn of_json(json: $number) -> $number {
                json
            }
        }
    };
}

number!(u32, U32, UInt32Type, UInt32Array, UInt32Builder);
number!(u64, U64, UInt64Type, UInt64Array, UInt64Builder);
number!(i64, I64, Int64Type, Int64Array, Int64Builder);

/// A name: text of which few are different.
pub(crate) struct Name;

impl Cell for Name {
    const KIND: Kind = Kind::Name;
    type Value<'a> = Cow<'a, str>;
    type Json = String;
    type Array = StringArray;
    type Builder = StringDictionaryBuilder<Int32Type>;

    fn typed(array: &ArrayRef) -> StringArray {
        array.as_string::<i32>().clone()
    }

    fn get(array: &StringArray, at: usize) -> Cow<'_, str> {
        Cow::Borrowed(array.value(at))
    }

    fn put(builder: &mut Self::Builder, value: Option<&Cow<'_, str>>) {
        builder.append_option(value.map(Cow::as_ref));
    }

    fn of_json(json: String) -> Cow<'static, str> {
        Cow::Owned(json)
    }
}

/// The type of a field: a cell that always has a value, or one that may have none.
pub(crate) trait Stored {
    const NULLABLE: bool;
    type Cell: Cell;
    type Value<'a>;

    /// The value at a place; the default or `None` where the column or the value is absent.
    fn get(array: Option<&ArrayOf<Self>>, at: usize) -> Self::Value<'_>
    where
        Self: Sized;
    fn value<'v, 'a>(value: &'v Self::Value<'a>) -> Option<&'v ValueOf<'a, Self>>
    where
        Self: Sized;
    fn of_json(json: Option<JsonOf<Self>>) -> Self::Value<'static>
    where
        Self: Sized;
}

pub(crate) type ArrayOf<T> = <<T as Stored>::Cell as Cell>::Array;
pub(crate) type BuilderOf<T> = <<T as Stored>::Cell as Cell>::Builder;
pub(crate) type JsonOf<T> = <<T as Stored>::Cell as Cell>::Json;
type ValueOf<'a, T> = <<T as Stored>::Cell as Cell>::Value<'a>;

impl<T: Cell> Stored for T {
    const NULLABLE: bool = false;
    type Cell = T;
    type Value<'a> = T::Value<'a>;

    fn get(array: Option<&T::Array>, at: usize) -> T::Value<'_> {
        <Option<T> as Stored>::get(array, at).unwrap_or_default()
    }

    fn value<'v, 'a>(value: &'v T::Value<'a>) -> Option<&'v T::Value<'a>> {
        Some(value)
    }

    fn of_json(json: Option<T::Json>) -> T::Value<'static> {
        json.map(T::of_json).unwrap_or_default()
    }
}

impl<T: Cell> Stored for Option<T> {
    const NULLABLE: bool = true;
    type Cell = T;
    type Value<'a> = Option<T::Value<'a>>;

    fn get(array: Option<&T::Array>, at: usize) -> Option<T::Value<'_>> {
        let array = array.filter(|array| array.is_valid(at))?;
        Some(T::get(array, at))
    }

    fn value<'v, 'a>(value: &'v Option<T::Value<'a>>) -> Option<&'v T::Value<'a>> {
        value.as_ref()
    }

    fn of_json(json: Option<T::Json>) -> Option<T::Value<'static>> {
        json.map(T::of_json)
    }
}

/// The column of a field.
pub(crate) const fn column<T: Stored>(name: &'static str, required: bool) -> Column {
    Column {
        name,
        kind: T::Cell::KIND,
        nullable: T::NULLABLE,
        required,
    }
}

/// Buffers a value.
pub(crate) fn put<T: Stored>(builder: &mut BuilderOf<T>, value: &T::Value<'_>) {
    T::Cell::put(builder, T::value(value));
}

/// Writes the entry of an object, if there is a value.
pub(crate) fn entry<T: Stored, M: SerializeMap>(
    map: &mut M,
    name: &'static str,
    value: &T::Value<'_>,
) -> Result<(), M::Error> {
    match T::value(value) {
        Some(value) => map.serialize_entry(name, value),
        None => Ok(()),
    }
}

/// The value of an object's entry.
pub(crate) fn of_json<T: Stored>(
    json: Option<JsonOf<T>>,
    column: &Column,
) -> Result<T::Value<'static>, String> {
    match json {
        None if column.required => Err(format!("missing field `{}`", column.name)),
        json => Ok(T::of_json(json)),
    }
}
