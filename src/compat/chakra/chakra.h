/* SPDX-License-Identifier: Apache-2.0 */
/* chakra.h - what the table of replaced programs takes from this room. */
#ifndef ORR_COMPAT_CHAKRA_H
#define ORR_COMPAT_CHAKRA_H

extern const struct orr_rules_link chakra_link_rules;          /* chakra_trace_link */
extern const struct orr_rules_convert chakra_convert_rules;    /* chakra_converter PyTorch */
extern const struct orr_rules_issue_log chakra_timeline_rules; /* chakra_timeline_visualizer */

extern const struct orr_rules_layers chakra_text_rules, chakra_early_text_rules; /* Text */
extern const struct orr_rules_flexflow chakra_flexflow_rules;                    /* FlexFlow */
extern const struct orr_rules_view chakra_view_rules; /* chakra_visualizer */

#endif
