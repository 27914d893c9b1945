mod crash;
mod faults;
mod full;
mod opening;
mod speed;
mod world;
