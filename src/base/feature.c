/*
 * The table of features: see feature.h.
 */
#include "feature.h"

#include "poison.h"

const struct feature_text feature_texts[FEATURES] = {
	[FEATURE_LANDLOCK_TRUNCATE] = { "landlock.truncate", "Landlock guards truncation",
					"truncation by a stray descriptor is not guarded by Landlock",
					"Linux 6.2 (Landlock ABI 3)", true },
	[FEATURE_LANDLOCK_IOCTL_DEV] = { "landlock.ioctl_dev", "Landlock guards ioctls of devices",
					 "ioctls of devices are guarded by seccomp and /dev alone",
					 "Linux 6.10 (Landlock ABI 5)", true },
	[FEATURE_LANDLOCK_SCOPES] = { "landlock.scopes",
				      "Landlock keeps signals and abstract sockets in the sandbox",
				      "signals and abstract sockets are kept in by namespaces alone",
				      "Linux 6.12 (Landlock ABI 6)", true },
	[FEATURE_DETACHED_LAYERS] = { "overlay.detached", "layers are never attached anywhere",
				      "layers are attached for a moment in the keeper's own mount namespace: "
				      "4 more mount calls for each layer",
				      "Linux 6.15", true },
	[FEATURE_CGROUP_KILL] = { "cgroup.kill", "a sandbox is killed by one write",
				  "sandboxes are killed process by process", "a cgroup v2 hierarchy", true },
	[FEATURE_FREEZER] = { "cgroup.freeze", "sandboxes can be paused and are frozen for snapshots",
			      "no pause; snapshots of running sandboxes are refused", "a cgroup v2 hierarchy",
			      true },
	[FEATURE_SOCKET_MEMORY] = { "limit.socket_memory", "buffers of sockets are limited",
				    "buffers of TCP and UDP sockets have no limit but the machine's",
				    "cgroup v2, or memory.kmem.tcp.limit_in_bytes in v1", false },
	[FEATURE_DISK_QUOTA] = { "limit.disk", "disk limits hold",
				 "no disk limits; snapshots and forks copy every file",
				 "btrfs (data.backend: btrfs)", false },
	[FEATURE_CAPTURE] = { "egress.capture", "every connection of a sandbox comes to the gate",
			      "sandboxes reach the gate by its proxy port and DNS alone, all else is "
			      "unreachable",
			      "sk_lookup or nf_tables (egress.capture)", false },
	[FEATURE_OWN_PROC] = { "view.proc", "/proc shows a box its own memory and processors",
			       "meminfo, cpuinfo, stat, loadavg and swaps of /proc show the machine's",
			       "/dev/fuse", true },
	[FEATURE_OWN_UPTIME] = { "view.uptime", "a sandbox's uptime begins with its start",
				 "sandboxes see the machine's uptime and boot time",
				 "Linux 6.3 with time namespaces", true },
	[FEATURE_OWN_CALLS] = { "view.calls",
				"statfs and sysinfo tell a sandbox its disk limit and its memory",
				"df shows sandboxes the machine's disk, sysinfo its memory", "Linux 5.19",
				true },
};

enum feature feature_named(struct view name)
{
	for (unsigned f = 0; f < FEATURES; f++)
		if (view_is(name, feature_texts[f].name))
			return (enum feature)f;
	return FEATURES;
}
