`default_nettype none
`include "assert.svh"

/// The multicast groups of the NIC, and which QPs are attached to each.
///
/// A group is there as long as a QP is attached to it. Its members are a bit for each QP index, in
/// words of 16; what is not 0 among its words is known at once (words_o). The tag of a QP, the rest
/// of its QPN, is kept once for all its groups: it can't change as long as the QP is in one,
/// because the QP is not destroyed before (Look).
///
/// find_valid_i is held with the address until found_o, a pulse: found_hit_o, a QP is attached to
/// that group; found_group_o and found_words_o then say which. Members of a word: word_o, a cycle
/// after word_en_i. tag_o: a cycle after tag_en_i. in_use_i: the finder is at work on what it has
/// found; nothing changes meanwhile. any_o: there is a group.
///
/// op_valid_i is held with the operation until op_done_o, a pulse with op_status_o. Finder and
/// operations take turns: an operation waits for one address at most, and for what the finder does
/// with it (in_use_i); an address waits for one operation at most (FoundInTime). Reset empties the
/// table.
module multicast_groups #(
    localparam int unsigned Groups = rnic_pkg::MulticastGroups,
    localparam int unsigned GroupBits = $clog2(Groups),
    localparam int unsigned Words = 16
) (
    input  wire logic                     clk_i,
    input  wire logic                     rst_ni,
    input  wire logic                     op_valid_i,
    input  wire rnic_pkg::multicast_op_t  op_i,
    output logic                          op_done_o,
    output logic [1:0]                    op_status_o,
    input  wire logic                     find_valid_i,
    input  wire logic [127:0]             find_mgid_i,
    output logic                          found_o,
    output logic                          found_hit_o,
    output logic [GroupBits-1:0]          found_group_o,
    output logic [Words-1:0]              found_words_o,
    input  wire logic                     in_use_i,
    input  wire logic                     word_en_i,
    input  wire logic [GroupBits-1:0]     word_group_i,
    input  wire logic [3:0]               word_index_i,
    output logic [15:0]                   word_o,
    input  wire logic                     tag_en_i,
    input  wire logic [7:0]               tag_qp_i,
    output logic [15:0]                   tag_o,
    output logic                          any_o
);
  // Idle   takes the finder's address, or that of an operation
  // Match  compares it with those of all groups
  // Found  tells the finder
  // Read   an operation reads the word and the tag of its QP; Look does so group after group
  // Judge  decides, and writes
  // Done   op_done_o
  typedef enum logic [2:0] {Idle, Match, Found, Read, Judge, Done} state_e;
  state_e state_q, state_d;

  logic find, finds_q, operated_q, hit, hit_q, attach, detach, look, full, bit_set, attached;
  logic write, last_group;
  logic [1:0] status, status_q;
  logic [127:0] key_q;
  logic [Groups-1:0] match_q, used, chosen;
  logic [GroupBits-1:0] group, group_q;
  logic [7:0] qp;
  logic [15:0] members, new_members, own_bit;
  logic [Groups*Words-1:0] words_q;
  logic [Words-1:0] found_words;

  assign qp     = op_i.qpn[7:0];
  assign attach = op_i.op == rnic_pkg::MulticastOpCodeAttach;
  assign detach = op_i.op == rnic_pkg::MulticastOpCodeDetach;
  assign look   = op_i.op == rnic_pkg::MulticastOpCodeLook;
  assign any_o  = used != '0;
  assign full   = used == '1;

  // ---- Addresses ----
  for (genvar g = 0; g < Groups; g++) begin : gen_group
    logic [127:0] mgid_q;
    assign used[g] = words_q[Words*g+:Words] != '0;
    always_ff @(posedge clk_i) begin
      if (state_q == Match) match_q[g] <= used[g] && mgid_q == key_q;
      if (write && attach && group_q == GroupBits'(g)) mgid_q <= key_q;
    end
  end

  // The group that matched, or the first that is free: one bit.
  assign hit    = match_q != '0;
  assign chosen = hit ? match_q : ~used & (used + 1'b1);
  always_comb begin : encode
    group = '0;
    for (int unsigned g = 0; g < Groups; g++) begin
      if (chosen[g]) group = group | GroupBits'(g);
    end
    found_words = '0;
    for (int unsigned g = 0; g < Groups; g++) begin
      if (match_q[g]) found_words = found_words | words_q[Words*g+:Words];
    end
  end
  assign found_o       = state_q == Found;
  assign found_hit_o   = hit;
  assign found_group_o = group;
  assign found_words_o = found_words;

  // ---- Operations ----
  // The first group of a Look is 0; the table's own reads and the finder's never meet.
  logic word_used;
  assign own_bit    = 16'd1 << qp[3:0];
  assign word_used  = words_q[{group_q, qp[7:4]}];
  assign members    = word_used ? word_o : '0;
  assign bit_set    = (members & own_bit) != '0;
  assign attached   = bit_set && (look || hit_q);
  assign last_group = group_q == GroupBits'(Groups - 1);
  always_comb begin : verdict
    status = rnic_pkg::MulticastStatusDone;
    if (attach && attached) status = rnic_pkg::MulticastStatusAttached;
    if (attach && !hit_q && full) status = rnic_pkg::MulticastStatusNoGroup;
    if (detach && !attached) status = rnic_pkg::MulticastStatusNotAttached;
    if (look && attached && tag_o == op_i.qpn[23:8]) status = rnic_pkg::MulticastStatusAttached;
  end
  assign write       = state_q == Judge && !look && status == rnic_pkg::MulticastStatusDone;
  assign new_members = attach ? members | own_bit : members & ~own_bit;

  // operated_q: the last turn was that of an operation.
  assign find = find_valid_i && (operated_q || !op_valid_i);
  always_comb begin : control
    state_d = state_q;
    unique case (state_q)
      Idle: begin
        if (find) state_d = Match;
        else if (op_valid_i && !in_use_i) state_d = look ? Read : Match;
      end
      Match:   state_d = finds_q ? Found : Read;
      Found:   state_d = Idle;
      Read:    state_d = Judge;
      Judge: begin
        state_d = Done;
        if (look && status == rnic_pkg::MulticastStatusDone && !last_group) state_d = Read;
      end
      Done:    state_d = Idle;
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == Idle) begin
      finds_q <= find;
      if (find) key_q <= find_mgid_i;
      else if (op_valid_i) key_q <= op_i.mgid;
      if (op_valid_i) group_q <= '0;
      if (state_d != Idle) operated_q <= !find;
    end
    if (state_q == Read && !look) begin
      group_q <= group;
      hit_q   <= hit;
    end
    if (state_q == Judge) begin
      status_q <= status;
      if (look) group_q <= group_q + 1'b1;
    end
    if (write) words_q[{group_q, qp[7:4]}] <= new_members != '0;
    if (!rst_ni) begin
      state_q    <= Idle;
      words_q    <= '0;
      operated_q <= 1'b0;
    end
  end
  assign op_done_o   = state_q == Done;
  assign op_status_o = status_q;

  logic [GroupBits-1:0] read_group;
  assign read_group = look ? group_q : group;
  ram_1r1w #(
      .Width(16),
      .Depth(Groups * Words)
  ) u_members (
      .clk_i,
      .wr_en_i  (write),
      .wr_addr_i({group_q, qp[7:4]}),
      .wr_data_i(new_members),
      .rd_en_i  (state_q == Read || word_en_i),
      .rd_addr_i((state_q == Read) ? {read_group, qp[7:4]} : {word_group_i, word_index_i}),
      .rd_data_o(word_o)
  );
  ram_1r1w #(
      .Width(16),
      .Depth(256)
  ) u_tags (
      .clk_i,
      .wr_en_i  (write && attach),
      .wr_addr_i(qp),
      .wr_data_i(op_i.qpn[23:8]),
      .rd_en_i  (state_q == Read || tag_en_i),
      .rd_addr_i((state_q == Read) ? qp : tag_qp_i),
      .rd_data_o(tag_o)
  );

  // For FoundInTime: cycles of a wait for the table; a Look, what it begins with, and the answer.
  localparam int unsigned Longest = 2 * Groups + 6;
  logic [$clog2(Longest+1)-1:0] cycles_q;
  logic passed_q;
  always_ff @(posedge clk_i) begin
    cycles_q <= (find_valid_i && !found_o) ? cycles_q + 1'b1 : '0;
    // An address was taken while the operation waited.
    passed_q <= op_valid_i && !op_done_o && (passed_q || (state_q == Idle && find));
    if (!rst_ni) passed_q <= 1'b0;
  end

  `ASSERT(FoundInTime, !find_valid_i || cycles_q < ($clog2(Longest + 1))'(Longest))
  `ASSERT(OneAddressFirst, !(state_q == Idle && find && passed_q))
  `ASSERT(OneMatch, state_q != Found || $onehot0(match_q))
  `ASSERT(OpHeld, state_q == Idle || finds_q || op_valid_i)
  `ASSERT(ReadsApart, state_q != Read || !(word_en_i || tag_en_i))
endmodule

`default_nettype wire
