"""Promise: what holds for a scheme of our own holds for the same exchange written down as a recipe.

The tests are those of the WebGate, unchanged; only the identity is `config/recipes/oam-webgate.yaml`.
"""

import pytest

import test_a_credential_refused_twice_is_a_502 as refused
import test_a_higher_level_is_fetched_not_refused as level
import test_a_hot_token_needs_no_issuer_call as hot_token
import test_a_probe_makes_ready_before_anybody_asks as probe
import test_a_revoked_token_is_replaced_unseen as revoked
import test_a_wrong_password_is_never_sent_twice as password
import test_an_issuer_in_trouble_does_not_hang_callers as trouble
import test_an_unchanged_caller_reaches_a_protected_api as unchanged
import test_many_cold_callers_share_one_grant as cold
import test_tokens_survive_a_crash_and_an_outage as survive
from recipes import RecipeCardea


@pytest.fixture
def gateways(lab, tmp_path):
    made = []

    def make(name="gateway"):
        folder = tmp_path / f"{name}-{len(made)}"
        folder.mkdir()
        made.append(RecipeCardea(lab, folder))
        return made[-1]

    yield make
    try:
        for gateway in made:
            gateway.finish()
    finally:
        for gateway in made:
            gateway.abandon()


test_a_quarantine_survives_a_restart_and_ends_by_command = password.test_a_quarantine_survives_a_restart_and_ends_by_command
test_a_password_refused_at_the_login_itself = password.test_a_password_refused_at_the_login_itself
test_a_new_secret_value_lifts_the_quarantine = password.test_a_new_secret_value_lifts_the_quarantine
test_a_login_without_an_answer_counts_as_spent = password.test_a_login_without_an_answer_counts_as_spent
test_two_hundred_callers_at_a_webgate = cold.test_two_hundred_callers_at_a_webgate
test_a_thousand_requests_on_one_token = hot_token.test_a_thousand_requests_on_one_token
test_the_first_request_costs_one_grant = hot_token.test_the_first_request_costs_one_grant
test_every_path_below_the_gate_uses_the_same_token = hot_token.test_every_path_below_the_gate_uses_the_same_token
test_two_gates_of_one_origin_have_a_token_each = hot_token.test_two_gates_of_one_origin_have_a_token_each
test_a_path_without_a_gate_is_passed_and_learned = hot_token.test_a_path_without_a_gate_is_passed_and_learned
test_a_burst_on_a_revoked_webgate_token = revoked.test_a_burst_on_a_revoked_webgate_token
test_a_burst_of_posts_is_replayed_with_its_bodies = revoked.test_a_burst_of_posts_is_replayed_with_its_bodies
test_an_expired_user_token_is_renewed_by_one_login = revoked.test_an_expired_user_token_is_renewed_by_one_login
test_a_user_token_that_dies_in_the_middle_of_a_grant = revoked.test_a_user_token_that_dies_in_the_middle_of_a_grant
test_a_rejected_handle_is_registered_again_once = revoked.test_a_rejected_handle_is_registered_again_once
test_a_restart_while_the_issuer_is_down = survive.test_a_restart_while_the_issuer_is_down
test_the_registration_outlives_the_tokens = survive.test_the_registration_outlives_the_tokens
test_no_secret_stands_in_the_store_in_clear = survive.test_no_secret_stands_in_the_store_in_clear
test_a_step_up_gets_a_token_of_that_level = level.test_a_step_up_gets_a_token_of_that_level
test_one_grant_one_replay_then_a_problem = refused.test_one_grant_one_replay_then_a_problem
test_a_bad_url_does_not_cut_off_the_others = refused.test_a_bad_url_does_not_cut_off_the_others
test_a_storm_on_a_bad_url_is_one_grant = refused.test_a_storm_on_a_bad_url_is_one_grant
test_final_pass_forwards_the_challenge = refused.test_final_pass_forwards_the_challenge
test_a_403_passes_and_asks_for_no_token = refused.test_a_403_passes_and_asks_for_no_token
test_a_context_that_the_issuer_calls_used = trouble.test_a_context_that_the_issuer_calls_used
test_required_and_probed_it_is_ready_with_a_token = probe.test_required_and_probed_it_is_ready_with_a_token
test_through_the_gateway_to_the_gate = unchanged.test_through_the_gateway_to_the_gate
