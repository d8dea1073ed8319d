// SPDX-License-Identifier: Apache-2.0
// Proved, for a memory that acknowledges bursts in any order: a request becomes bursts that cover
// its beats in order and do not cross 64 bytes, and as many beats of data go with each as it says;
// a burst's tag is not used again before its answer; a scoreboard entry is freed once for each
// request, when all of its bursts have been issued and the last answer comes, and never otherwise.
  logic f_started = 1'b0;
  // --- Requests.
  logic f_waits;
  logic [SLOT_BITS-1:0] f_slot;
  logic [7:0] f_beats, f_given;           // beats of data, those of the request that have been given
  logic [HAZARDS_LOG-1:0] f_hazard;
  // --- Any entry of the scoreboard.
  (* anyconst *) logic [HAZARDS_LOG-1:0] f_id;
  logic f_open;                           // a request of it has been begun and it is not free
  logic f_all;                            // all of its bursts have been issued
  logic [TAGS-1:0] f_mine;                // tags of its bursts without an answer
  logic f_came;                           // one of these has just come
  logic [5:0] f_count;
  always_comb begin
    f_count = '0;
    for (int i = 0; i < TAGS; i++) f_count = f_count + {5'd0, f_mine[i]};
  end
  wire [6:0] f_begun = begun[f_id];
  wire f_starts = aw_valid && aw_ready;
  wire f_starts_mine = f_starts && req_hazard == f_id;
  wire f_answers_mine = b_valid && f_mine[b_tag];
  wire f_frees = free_valid && free_id == f_id;
  wire f_all_next = f_starts_mine ? rest <= 8'd8 : f_all;

  initial assume (rst);
  always_comb begin
    if (req_valid) assume (req_beats != 8'd0 && {1'b0, req_beats} < 9'(2 ** SIZE_BITS));
    if (f_waits) assume (req_valid && req_slot == f_slot && req_beats == f_beats && req_hazard == f_hazard);
    if (b_valid) assume (busy[b_tag]);
    // An entry is not used again before it is free.
    if (req_valid && req_hazard == f_id && f_open && f_all) assume (in_burst || f_waits);
  end
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    f_waits <= !rst && req_valid && !req_ready;
    f_slot <= req_slot;
    f_beats <= req_beats;
    f_hazard <= req_hazard;
    if (rst) begin
      f_open <= 1'b0;
      f_all <= 1'b0;
      f_mine <= '0;
      f_given <= '0;
      f_came <= 1'b0;
    end else begin
      f_came <= f_answers_mine;
      if (b_valid) f_mine[b_tag] <= 1'b0;
      if (f_starts) f_mine[aw_tag] <= req_hazard == f_id;
      f_all <= f_all_next;
      if (f_starts_mine) f_open <= 1'b1;
      else if (f_frees) f_open <= 1'b0;
      if (req_ready) f_given <= '0;
      else if (w_valid && w_ready) f_given <= f_given + 8'd1;
    end
    if (f_started && !rst) begin
      // Bursts.
      assert (written[2:0] == 3'd0);
      if (written != 8'd0 || in_burst) assert (f_waits && written < f_beats);
      if (aw_valid) begin
        assert ({1'b0, at} + {5'd0, aw_len} < 9'(2 ** SIZE_BITS));
        assert (aw_addr == {req_slot, at[SIZE_BITS-1:0]} && aw_len >= 4'd1 && aw_len <= 4'd8 && !busy[aw_tag]);
        assert (in_burst ? w_last && f_given + 8'd1 == at : f_given == at);
      end
      if (in_burst) begin
        assert (burst_left >= 4'd1 && burst_left <= 4'd8);
        assert (f_given >= written && f_given - written < 8'd8);
        assert (last_burst == (f_beats - written <= 8'd8));
        assert (f_given + {4'd0, burst_left} == (last_burst ? f_beats : written + 8'd8));
      end
      if (!in_burst) assert (f_given == written);
      if (w_valid && w_ready && w_last) assert (req_ready == (f_given + 8'd1 == req_beats));
      else assert (!req_ready);
      // The entry.
      for (int i = 0; i < TAGS; i++) begin
        if (f_mine[i]) assert (busy[i]);
        if (busy[i]) assert (f_mine[i] == (owner[i] == f_id));
      end
      if (f_open) assert (f_begun == {f_all, f_count + {5'd0, f_came} + (touched[f_id] ? answered[f_id] - 6'd1 : 6'd0)});
      else assert (!touched[f_id]);
      assert ((f_open && !f_all) == (f_waits && f_hazard == f_id && (in_burst ? !last_burst && !(next_begun && rest <= 8'd8) : written != 8'd0)));
      if (next_begun) assert (in_burst && w_last && !last_burst);
      if (f_waits && f_hazard == f_id && written == 8'd0 && !in_burst) assert (!f_open);
      if (f_count != '0 || f_came) assert (f_open);
      if (f_open && f_all) assert (f_count != '0 || f_came);
      assert (f_came == (came && b_owner == f_id));
      assert (f_frees == (f_came && f_count == '0 && f_all_next && !f_starts_mine));
      if (f_frees) assert (f_open);
      if ((written != 8'd0 || in_burst) && f_hazard == f_id) assert (in_burst && last_burst ? f_all || !f_open : 1'b1);
    end
  end
