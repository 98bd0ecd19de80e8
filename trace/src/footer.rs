//! The raw footer of a Parquet file: what must be known of it before the decoder may see it.

/// Levels of nested columns in the schema of a footer, read without recursion; `None` where the footer is damaged.
///
/// The decoder recurses once per level, so a crafted schema of some kilobytes would overflow its stack.
pub(crate) fn levels(footer: &[u8]) -> Option<usize> {
    let mut thrift = Thrift { rest: footer };
    let mut deepest = 0;
    let mut id = 0;
    while let Some((field, kind)) = thrift.field(&mut id)? {
        match (field, kind) {
            (SCHEMA, LIST) => deepest = deepest.max(thrift.schema_levels()?),
            _ => thrift.skip(kind, 0)?,
        }
    }
    Some(deepest)
}

/// Fields of the structs `FileMetaData` and `SchemaElement`.
const SCHEMA: i64 = 2;
const NUM_CHILDREN: i64 = 5;

/// Types of Thrift's compact protocol.
const BOOLS: std::ops::RangeInclusive<u8> = 1..=2;
const BYTE: u8 = 3;
const INTEGERS: std::ops::RangeInclusive<u8> = 4..=6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Structs in structs that are followed; the format itself has fewer.
const MAX_NESTED_STRUCTS: u32 = 32;

struct Thrift<'a> {
    rest: &'a [u8],
}

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn drop_bytes(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Id and type of a struct's next field, the inner `None` at its end. `id` is that of the field before.
    #[expect(clippy::option_option, reason = "damaged, at the end, or a field")]
    fn field(&mut self, id: &mut i64) -> Option<Option<(i64, u8)>> {
        let header = self.byte()?;
        if header == 0 {
            return Some(None);
        }
        *id = match header >> 4 {
            0 => self.zigzag()?,
            delta => id.checked_add(i64::from(delta))?,
        };
        Some(Some((*id, header & 0xf)))
    }

    /// Length and element type of a list.
    fn list(&mut self) -> Option<(u64, u8)> {
        let header = self.byte()?;
        let length = match header >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        Some((length, header & 0xf))
    }

    fn skip(&mut self, kind: u8, nested: u32) -> Option<()> {
        if nested > MAX_NESTED_STRUCTS {
            return None;
        }
        match kind {
            kind if BOOLS.contains(&kind) => Some(()),
            BYTE => self.drop_bytes(1),
            kind if INTEGERS.contains(&kind) => self.varint().map(drop),
            DOUBLE => self.drop_bytes(8),
            UUID => self.drop_bytes(16),
            BINARY => {
                let length = self.varint()?;
                self.drop_bytes(length)
            }
            LIST | SET => {
                let (length, element) = self.list()?;
                (0..length).try_for_each(|_| self.skip_element(element, nested + 1))
            }
            MAP => {
                let length = self.varint()?;
                let kinds = if length == 0 { 0 } else { self.byte()? };
                (0..length).try_for_each(|_| {
                    self.skip_element(kinds >> 4, nested + 1)?;
                    self.skip_element(kinds & 0xf, nested + 1)
                })
            }
            STRUCT => {
                let mut id = 0;
                while let Some((_, kind)) = self.field(&mut id)? {
                    self.skip(kind, nested + 1)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    /// As [`skip`](Self::skip), but a bool outside a field header has a byte of its own.
    fn skip_element(&mut self, kind: u8, nested: u32) -> Option<()> {
        match kind {
            kind if BOOLS.contains(&kind) => self.drop_bytes(1),
            kind => self.skip(kind, nested),
        }
    }

    /// The schema is its tree in preorder, each element with the number of its children.
    fn schema_levels(&mut self) -> Option<usize> {
        let (length, kind) = self.list()?;
        if kind != STRUCT {
            return None;
        }
        let (mut open, mut deepest) = (Vec::<u64>::new(), 0);
        for _ in 0..length {
            let children = self.children()?;
            deepest = deepest.max(open.len());
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            open.push(children);
            while open.last() == Some(&0) {
                open.pop();
            }
        }
        Some(deepest)
    }

    fn children(&mut self) -> Option<u64> {
        let (mut id, mut children) = (0, 0);
        while let Some((field, kind)) = self.field(&mut id)? {
            match field {
                NUM_CHILDREN if INTEGERS.contains(&kind) => {
                    children = u64::try_from(self.zigzag()?).unwrap_or(0);
                }
                _ => self.skip(kind, 0)?,
            }
        }
        Some(children)
    }
}
