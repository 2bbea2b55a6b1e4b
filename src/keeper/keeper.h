/*
 * The keeper's state: what paddockd holds while it serves.
 */
#pragma once

#include "box_table.h"
#include "config.h"
#include "images.h"
#include "link.h"
#include "room.h"
#include "slots.h"
#include "storage.h"
#include "walls.h"

/* ahead.h */
struct ahead {
	bool made;
	struct walls *walls; /* NULL: nothing is known of the next box */
	struct spec spec;
	char image[80]; /* digest */
	uint32_t slot;
	int storage;
};

struct keeper {
	const struct config *config;
	struct loop *loop;
	struct loop_signals signals;

	/* directories */
	int data, run; /* DATA and RUN themselves */
	int run_boxes;
	int lock; /* RUN/lock, held for our life */
	char data_path[512], run_path[512];
	char bin_path[512]; /* where our own programs lie */

	struct walls_table walls;
	struct box_limits ceiling;
	struct slots slots;
	struct storage storage;
	struct images images;
	struct box_table boxes;
	struct ahead ahead;
	struct loop_timer tidy; /* leftover control groups */
	struct loop_timer idle; /* parts made ahead */
	struct loop_timer grow; /* the loop file, where it is nearly full; and the room beneath it */
	enum room room;         /* room.h */
	struct disk_room told;  /* to the api */
	uint64_t removed_ms, reclaimed_ms; /* when something was removed; when its room was fetched */
	uint64_t standard_disk_mb;         /* limit of a box that asks for none; 0: none */
	struct loop_task answered;         /* work behind the answer of a start */
	struct loop_task ending;           /* parts are made while a box ends */

	/* paddock-api */
	struct link api;
	pid_t api_pid;
	struct loop_io api_exit;
	struct loop_timer api_again;
	uint64_t api_started_ms;
	bool api_ready, announced, stopping;
	int config_fd;
	int listeners[1 + CONFIG_LISTENERS_MOST];
	unsigned n_listeners;
	char address[128]; /* of the first listener, with its real port */
	char admin_hash[65];

	/* paddock-hook */
	pid_t hook_pid;
	struct loop_io hook_exit;
	/* paddock-ai */
	struct link ai; /* brings it streams to the vault */
	pid_t ai_pid;
	struct loop_io ai_exit;

	/* paddock-gate: see gate.h */
	struct link gate;
	pid_t gate_pid;
	struct loop_io gate_exit;
	struct loop_timer gate_again; /* it died, or a box's sockets could not be made */
	uint64_t gate_started_ms;
	struct list gate_queue;  /* of boxes that it does not serve yet */
	struct list gate_failed; /* of those whose sockets could not be made */
	struct loop_task gate_next;

	/* paddock-gauge: see gauges.h */
	struct gauge_slot *gauge_slots;
	struct gauge_beat *gauge_beat;
	int gauge_table, gauge_beat_fd;
	pid_t gauge_pid;
	struct loop_io gauge_exit;
	struct loop_timer gauge_again, gauge_look;
	uint64_t gauge_started_ms;
	uint64_t gauge_answered; /* as of the last look; UINT64_MAX: nothing waited then */

	/* paddock-vault */
	struct link vault;
	pid_t vault_pid;
	struct loop_io vault_exit;
	struct loop_timer vault_again, vault_join;
	uint64_t vault_started_ms;

	/* paddock-signer: see signer.h */
	struct link signer;
	pid_t signer_pid;
	struct loop_io signer_exit;
	struct loop_timer signer_again;
	uint64_t signer_started_ms;
	struct loop_io owner; /* RUN/owner.sock: see owner.h */

	struct list flushes; /* under way */
	struct list clones;  /* likewise */
	struct list surveys; /* likewise */

	struct loop_io sweep_exit;
	struct loop_timer sweep_timer;
	pid_t sweep_pid;
	bool sweep_again;
};
