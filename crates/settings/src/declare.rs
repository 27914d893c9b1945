//! One line declares a setting.

/// Makes the enum `Setting` of lines such as
///
/// ```text
/// /// Bytes that are gathered for one write.
/// WriteUnit(Bytes), write_unit, "write unit", SIZES;
/// ```
///
/// which are the variant with the type of its value, the function that takes this value out of a `Setting`,
/// the name for people and files, and, if the value is a number, the range that it has in a file.
macro_rules! settings {
    (
        $(#[$about:meta])*
        pub enum Setting {
            $(
                $(#[$doc:meta])*
                $variant:ident($value:ty), $accessor:ident, $name:literal $(, $range:expr)?;
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(into = "crate::stored::Stored", try_from = "crate::stored::Stored")]
        #[non_exhaustive]
        pub enum Setting {
            $($(#[$doc])* $variant($value),)*
            /// A setting of a file that this version does not know.
            Unknown(crate::Unknown),
        }

        impl Setting {
            /// As people and files call it.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Unknown(unknown) => &unknown.name,
                }
            }

            /// The value in words, with its unit.
            pub fn value(&self) -> String {
                match self {
                    $(Self::$variant(value) => crate::value::Value::text(value),)*
                    Self::Unknown(unknown) => unknown.value.clone(),
                }
            }

            /// The number in the value; `None` if it is a word.
            pub fn amount(&self) -> Option<crate::Amount> {
                match self {
                    $(Self::$variant(value) => crate::value::Value::amount(value),)*
                    Self::Unknown(unknown) => unknown.amount,
                }
            }

            $(
                #[doc = concat!("The value if the setting is the ", $name, ".")]
                pub fn $accessor(&self) -> Option<$value> {
                    match self {
                        Self::$variant(value) => Some(*value),
                        _ => None,
                    }
                }
            )*
        }

        impl From<Setting> for crate::stored::Stored {
            fn from(setting: Setting) -> Self {
                Self::new(setting.name(), setting.value(), setting.amount())
            }
        }

        impl TryFrom<crate::stored::Stored> for Setting {
            type Error = crate::Error;

            fn try_from(stored: crate::stored::Stored) -> Result<Self, crate::Error> {
                let known = match stored.name() {
                    $($name => stored.value($name, None $(.or(Some($range)))?)?.map(Self::$variant),)*
                    _ => None,
                };
                Ok(known.unwrap_or_else(|| Self::Unknown(stored.into())))
            }
        }
    };
}

pub(crate) use settings;
