/*
 * The sweeper: removes what lies in DATA/trash, in a process of its own (the
 * same program, role "sweep"), so that large trees cost the keeper nothing.
 */
#pragma once

struct keeper;

/* Empties a directory by fd (which it closes), without following links. For small trees
 * that are ours, and for the sweeper. */
void sweep_tree(int dir);
/* Starts a sweeper soon, or notes that there is more to do when one is at work. */
void sweep_start(struct keeper *k);
/* The role itself: fd 3 is the trash directory. */
int sweep_main(void);
