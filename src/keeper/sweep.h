/*
 * The sweeper: removes the files in DATA/trash in a separate process (the same program with the role
 * "sweep"), so that large trees do not delay the keeper.
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
