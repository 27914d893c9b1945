mod crash;
mod faults;
mod full;
mod nonsense;
mod opening;
mod speed;
mod world;
