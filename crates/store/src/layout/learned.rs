//! The settings that the profile of a drive has decided, as far as a store takes them.
//!
//! With the feature `profile` they come from a `DeviceProfile`. Without it there are none, and the store
//! needs nothing of what fits and measures.

/// The settings of a profile.
#[derive(Clone, Debug, Default)]
pub(crate) struct LearnedSettings(Vec<Learned>);

/// One setting.
#[derive(Clone, Debug)]
pub(crate) struct Learned {
    pub setting: String,
    pub value: String,
    /// Its value, if it is a size.
    pub bytes: Option<u64>,
    /// Its value, if it is a number of requests.
    pub count: Option<u64>,
    pub because: String,
    pub from_default: bool,
}

impl LearnedSettings {
    /// The decision on `setting`, if the profile has one.
    pub fn decision(&self, setting: &str) -> Option<&Learned> {
        self.0.iter().find(|learned| learned.setting == setting)
    }
}

#[cfg(any(test, feature = "profile"))]
impl From<&flashgrain_profile::DeviceProfile> for LearnedSettings {
    fn from(profile: &flashgrain_profile::DeviceProfile) -> Self {
        let learned = profile.decisions.iter().map(|decision| Learned {
            setting: decision.setting.clone(),
            value: decision.value.clone(),
            bytes: decision.bytes(),
            count: decision.count(),
            because: decision.because.clone(),
            from_default: decision.from_default,
        });
        Self(learned.collect())
    }
}
