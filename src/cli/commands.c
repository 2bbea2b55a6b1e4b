/*
 * The list of all commands.
 */
#include "cmd.h"

#include "poison.h"

#define COMMANDS(X)                                                                                          \
	X(serve)                                                                                             \
	X(run)                                                                                               \
	X(create)                                                                                            \
	X(exec)                                                                                              \
	X(shell)                                                                                             \
	X(cp)                                                                                                \
	X(files_ls)                                                                                          \
	X(files_stat)                                                                                        \
	X(files_find)                                                                                        \
	X(files_grep)                                                                                        \
	X(files_mkdir)                                                                                       \
	X(files_mv)                                                                                          \
	X(files_cp)                                                                                          \
	X(files_chmod)                                                                                       \
	X(files_replace)                                                                                     \
	X(files_rm)                                                                                          \
	X(files_sign)                                                                                        \
	X(ls)                                                                                                \
	X(inspect)                                                                                           \
	X(update)                                                                                            \
	X(rm)                                                                                                \
	X(pause)                                                                                             \
	X(resume)                                                                                            \
	X(stop)                                                                                              \
	X(start)                                                                                             \
	X(extend)                                                                                            \
	X(fork)                                                                                              \
	X(ps)                                                                                                \
	X(logs)                                                                                              \
	X(attach)                                                                                            \
	X(kill)                                                                                              \
	X(wait)                                                                                              \
	X(events)                                                                                            \
	X(stats)                                                                                             \
	X(top)                                                                                               \
	X(url)                                                                                               \
	X(open)                                                                                              \
	X(ports)                                                                                             \
	X(forward)                                                                                           \
	X(mcp)                                                                                               \
	X(shells_create)                                                                                     \
	X(shells_ls)                                                                                         \
	X(shells_show)                                                                                       \
	X(shells_rm)                                                                                         \
	X(code_run)                                                                                          \
	X(code_create)                                                                                       \
	X(code_ls)                                                                                           \
	X(code_show)                                                                                         \
	X(code_restart)                                                                                      \
	X(code_interrupt)                                                                                    \
	X(code_rm)                                                                                           \
	X(link_create)                                                                                       \
	X(link_ls)                                                                                           \
	X(link_rm)                                                                                           \
	X(snapshot_create)                                                                                   \
	X(snapshot_ls)                                                                                       \
	X(snapshot_show)                                                                                     \
	X(snapshot_rm)                                                                                       \
	X(workspace_create)                                                                                  \
	X(workspace_ls)                                                                                      \
	X(workspace_show)                                                                                    \
	X(workspace_rm)                                                                                      \
	X(egress_show)                                                                                       \
	X(egress_allow)                                                                                      \
	X(egress_deny)                                                                                       \
	X(egress_set)                                                                                        \
	X(egress_reset)                                                                                      \
	X(egress_log)                                                                                        \
	X(egress_token)                                                                                      \
	X(egress_sets)                                                                                       \
	X(ai_show)                                                                                           \
	X(ai_set)                                                                                            \
	X(ai_reset)                                                                                          \
	X(ai_rotate)                                                                                         \
	X(ai_calls)                                                                                          \
	X(ai_usage)                                                                                          \
	X(secret_set)                                                                                        \
	X(secret_ls)                                                                                         \
	X(secret_rm)                                                                                         \
	X(vault_rotate)                                                                                      \
	X(vault_ca)                                                                                          \
	X(agent_install)                                                                                     \
	X(agent_new)                                                                                         \
	X(agent_ls)                                                                                          \
	X(agent_show)                                                                                        \
	X(agent_start)                                                                                       \
	X(agent_stop)                                                                                        \
	X(agent_restart)                                                                                     \
	X(agent_logs)                                                                                        \
	X(agent_rm)                                                                                          \
	X(agent_search)                                                                                      \
	X(agent_publish)                                                                                     \
	X(agent_index)                                                                                       \
	X(agent_key)                                                                                         \
	X(agent_upgrade)                                                                                     \
	X(agent_allow)                                                                                       \
	X(agent_limits)                                                                                      \
	X(wallet_ls)                                                                                         \
	X(wallet_new)                                                                                        \
	X(wallet_import)                                                                                     \
	X(wallet_test)                                                                                       \
	X(wallet_external)                                                                                   \
	X(wallet_connect)                                                                                    \
	X(wallet_sessions)                                                                                   \
	X(wallet_end)                                                                                        \
	X(wallet_export)                                                                                     \
	X(wallet_rm)                                                                                         \
	X(wallet_limits)                                                                                     \
	X(wallet_pause)                                                                                      \
	X(wallet_resume)                                                                                     \
	X(wallet_settle)                                                                                     \
	X(wallet_nonce)                                                                                      \
	X(wallet_abandon)                                                                                    \
	X(tx_ls)                                                                                             \
	X(tx_show)                                                                                           \
	X(tx_approve)                                                                                        \
	X(tx_reject)                                                                                         \
	X(tx_cancel)                                                                                         \
	X(tx_speed_up)                                                                                       \
	X(tx_revoke)                                                                                         \
	X(tx_watch)                                                                                          \
	X(tx_export)                                                                                         \
	X(tx_pause)                                                                                          \
	X(tx_limits)                                                                                         \
	X(tx_spent)                                                                                          \
	X(tx_status)                                                                                         \
	X(tx_audit)                                                                                          \
	X(webhook_create)                                                                                    \
	X(webhook_ls)                                                                                        \
	X(webhook_show)                                                                                      \
	X(webhook_rm)                                                                                        \
	X(key_create)                                                                                        \
	X(key_ls)                                                                                            \
	X(key_rm)                                                                                            \
	X(tenant_create)                                                                                     \
	X(tenant_ls)                                                                                         \
	X(quota_show)                                                                                        \
	X(quota_set)                                                                                         \
	X(image_import)                                                                                      \
	X(image_of)                                                                                          \
	X(image_ls)                                                                                          \
	X(image_rm)                                                                                          \
	X(login)                                                                                             \
	X(context_use)                                                                                       \
	X(context_ls)                                                                                        \
	X(context_rm)                                                                                        \
	X(config_check)                                                                                      \
	X(config_show)                                                                                       \
	X(sandkasten)                                                                                        \
	X(doctor)                                                                                            \
	X(info)                                                                                              \
	X(metrics)                                                                                           \
	X(api)                                                                                               \
	X(completion)                                                                                        \
	X(version)

#define DECLARE(name) extern const struct cmd cmd_##name;
COMMANDS(DECLARE)

#define LIST(name) &cmd_##name,
const struct cmd *const commands[] = { COMMANDS(LIST) };
const size_t commands_n = ELEMS(commands);

const struct opt cmd_common_opts[CMD_COMMON_OPTS] = {
	{ "help", 'h', OPT_FLAG, offsetof(struct cmd_common, help), NULL, "show this help" },
	{ "version", 0, OPT_FLAG, offsetof(struct cmd_common, version), NULL, "show the version" },
};

const struct opt cmd_json_opts[CMD_JSON_OPTS] = {
	{ "json", 0, OPT_FLAG, offsetof(struct cmd_ctx, json), NULL, "print JSON" },
};
