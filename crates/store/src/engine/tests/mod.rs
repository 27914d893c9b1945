mod crash;
mod world;
